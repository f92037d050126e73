#include "gpu/emulated_device.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "collective/memory.h"
#include "collective/operate.h"
#include "collective/sample.h"
#include "core/error.h"
#include "core/extreme.h"
#include "frame/frame.h"
#include "gpu/codec.h"
#include "gpu/cuda.h"
#include "gpu/survey.h"
#include "support/fake_cuda.h"

namespace laconic::test {
namespace {

std::atomic<gpu::Fault> sums_fail_with{gpu::Fault::none};
std::atomic<std::uint64_t> sums_failed{0};
std::atomic<std::size_t> summed{0};
std::atomic<bool> wide_is_too_much{false};
std::atomic<unsigned> codec_loaded{0}, survey_loaded{0};  // bits: on these devices

std::atomic<int> too_old{[] {
  const char* const said = std::getenv("FAKE_CUDA_TOO_OLD");  // NOLINT(concurrency-mt-unsafe)
  return said != nullptr ? std::atoi(said) : -1;
}()};

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

unsigned bit_of_device() { return 1U << current_device(); }

}  // namespace

void let_sums_fail(gpu::Fault fault) { sums_fail_with = fault; }
std::uint64_t failed_sums() { return sums_failed; }
std::size_t most_summed() { return summed; }
void let_be_too_old(int device) { too_old = device; }
void let_wide_integers_be_too_much(bool too_much) { wide_is_too_much = too_much; }

}  // namespace laconic::test

namespace laconic::gpu {
namespace {

/// CUDA would load them now, and may wait for the device.
void require_loaded(const std::atomic<unsigned>& on) {
  if ((on & test::bit_of_device()) == 0) fake::give_up("a kernel is launched that its device has not loaded");
}

/// Runs work, which returns the bytes that it wrote, when the stream comes to it.
void launch(Stream stream, Report* report, std::function<std::size_t()> work) {
  require_loaded(test::codec_loaded);
  fake::enqueue(stream, [report, work = std::move(work)] {
    const fake::DeviceAccess open;
    Report found;
    try {
      found.bytes = work();
    } catch (const Error& e) {
      found.faults = static_cast<std::uint32_t>(e.code() == Code::too_small ? Fault::too_small : Fault::corrupt);
    }
    *report = found;
    return true;
  });
}

void launch(Stream stream, std::function<void()> work) {
  require_loaded(test::survey_loaded);
  fake::enqueue(stream, [work = std::move(work)] {
    const fake::DeviceAccess open;
    work();
    return true;
  });
}

frame::Bytes bytes_of(const FrameIn& in) {
  const frame::Header h = frame::peek({in.data, in.readable});
  if (h.frame_bytes > in.readable || !h.grid.same_points(in.grid) || h.operands != in.operands) {
    throw Error(Code::corrupt, "not the frame that was announced");
  }
  return {in.data, h.frame_bytes};
}

void require(bool what, const char* text) {
  if (!what) throw Error(Code::invalid_argument, text);
}

void require_kernels(const Grid& grid, std::uint64_t operands) {
  if (!can_code(grid, operands)) throw Error(Code::unsupported, "the device has no kernels for this");
}

std::uint64_t arrays_in(std::span<const FrameIn> frames) {
  std::uint64_t all = 0;
  for (const FrameIn& f : frames) all += f.operands;
  return all;
}

void require_workspace(Workspace given, std::size_t needed) {
  require(given.data != nullptr && given.bytes >= needed, "workspace");
  require(reinterpret_cast<std::uintptr_t>(given.data) % 16 == 0, "workspace: alignment");
}

bool fails(std::size_t operands) {
  std::size_t most = test::summed;
  while (most < operands && !test::summed.compare_exchange_weak(most, operands)) continue;
  if (test::sums_fail_with.load() == Fault::none) return false;
  ++test::sums_failed;
  return true;
}

/// What failed.
void fail(Stream stream, Report* report) {
  const auto faults = static_cast<std::uint32_t>(test::sums_fail_with.load());
  launch(stream, [=] { *report = {0, faults, 0}; });
}

/// As the values that a frame's writer was asked for. Chunks that could not be written cannot be read.
void deliver(const FrameOut& out, Stream stream, bool written = true) {
  const Values& v = out.values;
  if (v.report == nullptr) return;
  if (!written) {
    launch(stream, [=] { std::memset(v.y.data, 0xA5, v.y.bytes()); });
    return launch(stream, [=] { *v.report = {0, static_cast<std::uint32_t>(Fault::corrupt), 0}; });
  }
  launch(stream, v.report, [=] {
    frame::decode({out.data, frame::peek({out.data, out.capacity}).frame_bytes}, v.y, 1, v.divisor);
    return std::size_t{0};
  });
}

/// held and the frames, one after the other.
std::size_t add_all(frame::Bytes held, std::span<const FrameIn> in, const FrameOut& out) {
  std::vector<std::uint8_t> sum(held.begin(), held.end());
  for (const FrameIn& next : in) {
    std::vector<std::uint8_t> both(out.capacity);
    both.resize(frame::add(sum, bytes_of(next), both));
    sum.swap(both);
  }
  std::copy(sum.begin(), sum.end(), out.data);
  return sum.size();
}

}  // namespace

void load_codec() {
  if (test::current_device() == test::too_old) check_cuda(cudaErrorNoKernelImageForDevice, "cudaFuncGetAttributes");
  test::codec_loaded |= test::bit_of_device();
}
void load_survey() { test::survey_loaded |= test::bit_of_device(); }

bool can_code(const Grid& grid, std::uint64_t operands) {
  return is_float(grid.dtype) && !(test::wide_is_too_much && needs_wide_integers(grid, operands));
}

std::size_t encode_workspace(std::size_t count) { return 64 + count / 64; }
std::size_t decode_workspace(std::size_t count) { return 64 + count / 32; }
std::size_t sum_workspace(DType, std::size_t count, std::size_t operands) { return 64 + operands * (count / 32); }

void encode(ConstArray x, const Grid& grid, const FrameOut& out, Workspace workspace, Report* report, Stream stream) {
  require_workspace(workspace, encode_workspace(x.count));
  require_kernels(grid, 1);
  launch(stream, report, [=] { return frame::encode(x, grid, {out.data, out.capacity}); });
  deliver(out, stream);
}

void decode(const FrameIn& in, MutArray y, Workspace workspace, Report* report, Stream stream, std::uint32_t divisor) {
  require_workspace(workspace, decode_workspace(y.count));
  require_kernels(in.grid, in.operands);
  if (in.operands > 1 && test::sums_fail_with.load() != Fault::none) {
    launch(stream, [=] { std::memset(y.data, 0xA5, y.bytes()); });
    return fail(stream, report);
  }
  launch(stream, report, [=] {
    frame::decode(bytes_of(in), y, 1, divisor);
    return std::size_t{0};
  });
}

void sum(std::span<const FrameIn> in, std::size_t count, const FrameOut& out, Workspace workspace, Report* report,
         Stream stream) {
  require_workspace(workspace, sum_workspace(in[0].grid.dtype, count, in.size()));
  require(in.size() >= 2 && in.size() <= 8, "in: want 2 to 8 frames");
  require_kernels(in[0].grid, arrays_in(in));
  if (fails(in.size())) {
    fail(stream, report);
    return deliver(out, stream, false);
  }
  launch(stream, report, [=, in = std::vector(in.begin(), in.end())] {
    return add_all(bytes_of(in[0]), std::span(in).subspan(1), out);
  });
  deliver(out, stream);
}

void encode_sum(ConstArray x, std::span<const FrameIn> in, const FrameOut& out, Workspace workspace, Report* report,
                Stream stream) {
  require_workspace(workspace, sum_workspace(x.dtype, x.count, in.size() + 1));
  require(!in.empty() && in.size() <= 7, "in: want 1 to 7 frames");
  require_kernels(in[0].grid, arrays_in(in) + 1);
  if (fails(in.size() + 1)) {
    fail(stream, report);
    return deliver(out, stream, false);
  }
  launch(stream, report, [=, in = std::vector(in.begin(), in.end())] {
    std::vector<std::uint8_t> first(out.capacity);
    first.resize(frame::encode_add(x, bytes_of(in[0]), first));
    return add_all(first, std::span(in).subspan(1), out);
  });
  deliver(out, stream);
}

void check(const FrameIn& in, Workspace workspace, Report* report, Stream stream) {
  require_workspace(workspace, decode_workspace(0));
  launch(stream, report, [=] {
    frame::check({in.data, in.readable});
    return std::size_t{0};
  });
}

void scan(ConstArray x, Range* result, Stream stream) {
  launch(stream, [=] { *result = laconic::scan(x); });
}

void count_outliers(ConstArray x, double limit, double fill, Outliers* result, Stream stream) {
  launch(stream, [=] { *result = laconic::count_outliers(x, limit, fill); });
}

void divide(MutArray x, int divisor, Stream stream) {
  launch(stream, [=] { laconic::divide(x, divisor); });
}

void take_extreme(Op op, MutArray a, ConstArray b, Stream stream) {
  launch(stream, [=] { laconic::take_extreme(op, a, b); });
}

std::size_t sample_elements(std::size_t count) { return Sample{count}.elements(); }

void gather_sample(ConstArray x, MutArray out, Stream stream) {
  launch(stream, [=] { host_memory().fetch_sample(x, out.data); });
}

}  // namespace laconic::gpu
