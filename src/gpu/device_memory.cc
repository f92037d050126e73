#include "gpu/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "collective/movement.h"
#include "collective/reduction.h"
#include "collective/staged.h"
#include "collective/staged_plain.h"
#include "core/beside_captures.h"
#include "gpu/cuda.h"
#include "gpu/device_extreme.h"
#include "gpu/device_kernel.h"
#include "gpu/survey.h"
#include "transport/transport.h"

namespace laconic::gpu {
namespace {

// What a segment costs beside its bytes (launches, and waiting for them: 60 us measured, as much as 10 MiB) asks for
// more than on the host.
constexpr Memory::SegmentBytes segment_bytes_on_device{std::size_t{2} << 20, std::size_t{4} << 20};

// A message is seldom longer than its elements were; a sum of absurd values may be, and gets room that is not pinned.
constexpr std::size_t pinned_of_a_message = segment_bytes_on_device.most + (std::size_t{128} << 10);

struct HostRoom {
  HostRoom(std::size_t wanted, std::size_t pinned) : bytes(wanted) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    const BesideCaptures beside;
    // Where it cannot be pinned (a limit of the system's), copies are slower, that is all.
    registered = cudaHostRegister(data, pinned, cudaHostRegisterDefault) == cudaSuccess;
    if (!registered) static_cast<void>(cudaGetLastError());
  }
  ~HostRoom() {
    const BesideCaptures beside;
    if (registered) cudaHostUnregister(data);
    munmap(data, bytes);
  }
  HostRoom(const HostRoom&) = delete;
  HostRoom& operator=(const HostRoom&) = delete;

  void* data;
  std::size_t bytes;
  bool registered = false;
};

/// As where the host's runs out: a call that lacks room for elements in its middle must end the communicator.
struct OutOfMemory : std::bad_alloc {
  [[nodiscard]] const char* what() const noexcept override { return "cudaMalloc: out of memory"; }
};

std::size_t in_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::max<std::size_t>(1, (bytes + page - 1) / page) * page;
}

/// Pinned as far as `pinned`.
Room host_room(std::size_t bytes, std::size_t pinned) {
  const std::size_t whole = in_pages(bytes);
  auto room = std::make_shared<HostRoom>(whole, std::min(whole, in_pages(pinned)));
  auto* const data = static_cast<std::uint8_t*>(room->data);
  return {std::move(room), data};
}

/// What the stream has been given so far.
std::shared_ptr<CUevent_st> mark_in(Stream stream) {
  const BesideCaptures beside;
  Event event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  std::shared_ptr<CUevent_st> mark(event, [](Event e) { cudaEventDestroy(e); });
  check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
  return mark;
}

void refuse_capturing(Stream stream) {
  if (is_capturing(stream)) {
    throw Error(Code::unsupported, "stream: is being captured; a collective that compresses cannot be part of a graph");
  }
}

}  // namespace

DeviceMemory::DeviceMemory() {
  load_codec();
  load_survey();
  second_.use(second_stream_.get());
}
DeviceMemory::~DeviceMemory() = default;

void DeviceMemory::use(Stream stream) {
  refuse_capturing(stream);
  buffers_.use(stream);
}

std::unique_ptr<Memory> DeviceMemory::for_another_thread() {
  auto other = std::make_unique<DeviceMemory>();
  other->buffers_.use(other->own_stream_.emplace().get());
  other->let_leave(false);
  return other;
}

Memory::After DeviceMemory::after_all_so_far() {
  refuse_capturing(stream());
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const std::shared_ptr<CUevent_st> now = mark_in(stream());
  return [device, now](Memory& other) {
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
    const BesideCaptures beside;
    check_cuda(cudaStreamWaitEvent(static_cast<DeviceMemory&>(other).stream(), now.get(), 0), "cudaStreamWaitEvent");
  };
}

Room DeviceMemory::array_room(std::size_t bytes) {
  void* data = nullptr;
  const BesideCaptures beside;
  const cudaError_t done = cudaMalloc(&data, std::max<std::size_t>(bytes, 1));
  if (done == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw OutOfMemory();
  }
  check_cuda(done, "cudaMalloc");
  return {static_cast<std::uint8_t*>(data), [](std::uint8_t* p) {
            const BesideCaptures at_its_end;
            cudaFree(p);
          }};
}

Room DeviceMemory::message_room(std::size_t bytes) { return host_room(bytes, pinned_of_a_message); }

Room DeviceMemory::copy_room(std::size_t bytes) { return host_room(bytes, bytes); }

void DeviceMemory::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0 || to == from) return;
  const auto* const first = static_cast<const std::uint8_t*>(from);
  auto* const target = static_cast<std::uint8_t*>(to);
  if (target < first + bytes && first < target + bytes) {
    buffers_.move(target, first, bytes);
  } else if (!is_device_pointer(to)) {  // memory of a message may be pinned at its beginning alone
    buffers_.copy_out(target, first, bytes);
  } else if (!is_device_pointer(from)) {
    buffers_.copy_in(target, first, bytes);
  } else {
    buffers_.copy(to, from, bytes);
  }
  buffers_.finish();
}

void DeviceMemory::begin_copy(void* to, const void* from, std::size_t bytes) {
  if (!is_device_pointer(to) || !is_device_pointer(from)) return copy(to, from, bytes);
  buffers_.copy(to, from, bytes);
}

void DeviceMemory::fetch_sample(ConstArray x, void* to) {
  const MutArray there{nullptr, sample_elements(x.count), x.dtype};
  auto* const chunks = buffers_.elements.at_least(there.bytes());
  gather_sample(x, {chunks, there.count, there.dtype}, stream());
  fetch(chunks, there.bytes(), to);
}

/// A little of what lies on the device.
void DeviceMemory::fetch(const void* from, std::size_t bytes, void* to) {
  auto* const here = buffers_.pinned.at_least(bytes);
  buffers_.copy(here, from, bytes);
  buffers_.finish();
  std::memcpy(to, here, bytes);
}

Range DeviceMemory::scan(ConstArray x, int /*threads*/) {
  auto* const there = reinterpret_cast<Range*>(buffers_.elements.at_least(sizeof(Range)));
  gpu::scan(x, there, stream());
  Range found;
  fetch(there, sizeof found, &found);
  return found;
}

Outliers DeviceMemory::count_outliers(ConstArray x, double limit, double fill) {
  auto* const there = reinterpret_cast<Outliers*>(buffers_.elements.at_least(sizeof(Outliers)));
  gpu::count_outliers(x, limit, fill, there, stream());
  Outliers found;
  fetch(there, sizeof found, &found);
  // Nobody has looked where they are: all may be neighbours.
  found.densest = std::min<std::uint64_t>(found.count - std::min(found.count, found.fills), frame::chunk_values);
  return found;
}

void DeviceMemory::divide(MutArray x, int by) {
  gpu::divide(x, by, stream());
  buffers_.finish();
}

std::unique_ptr<Kernel> DeviceMemory::movement(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                               const Budget& budget, int threads) {
  const bool ratio = std::isinf(budget.grid.bound);  // looked for on the host
  if (budget.codec == CodecId::slice && !budget.reopens && !ratio && can_code(budget.grid, 1)) {
    return std::make_unique<DeviceKernel>(DeviceKernel::Work::movement, *this, lanes(), std::move(operands),
                                          std::move(results), budget, 1, threads);
  }
  const auto make = [&](std::vector<ConstArray> x, std::vector<MutArray> y) {
    return host_memory().movement(std::move(x), std::move(y), budget, threads);
  };
  return std::make_unique<StagedKernel>(*this, std::move(operands), std::move(results), make);
}

std::unique_ptr<Kernel> DeviceMemory::reduction(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results,
                                                const Budget& budget, Summands summands, int threads) {
  const bool adds = op == Op::sum || op == Op::average;
  const bool codes = can_code(budget.grid, static_cast<std::uint64_t>(std::max(summands.formed, 2)));
  if (adds && budget.route == Route::on_grid && codes) {
    const auto divisor = static_cast<std::uint32_t>(op == Op::average ? summands.averaged : 1);
    return std::make_unique<DeviceKernel>(DeviceKernel::Work::sum, *this, lanes(), std::move(operands),
                                          std::move(results), budget, divisor, threads);
  }
  if (is_extreme(op) && budget.route != Route::stepwise && codes) {
    return std::make_unique<DeviceExtremeKernel>(op, *this, lanes(), std::move(operands), std::move(results), budget,
                                                 threads);
  }
  const auto make = [&](std::vector<ConstArray> x, std::vector<MutArray> y) {
    return host_memory().reduction(op, std::move(x), std::move(y), budget, summands, threads);
  };
  return std::make_unique<StagedKernel>(*this, std::move(operands), std::move(results), make);
}

PlainCollectives* DeviceMemory::plain(Transport& transport) {
  PlainCollectives* const library = transport.plain();
  if (library == nullptr) return nullptr;
  if (library->takes_device_arrays()) {
    library->work_on(stream());
    return library;
  }
  if (staged_ == nullptr || staged_over_ != library) {
    staged_ = std::make_unique<StagedPlain>(*this, *library, transport.rank());
    staged_over_ = library;
  }
  return staged_.get();
}

void DeviceMemory::before_call(Transport& transport) {
  PlainCollectives* const library = transport.plain();
  if (library == nullptr || !library->can_leave_on_stream()) return;
  library->await_left();
  buffers_.finish();
}

void DeviceMemory::before_plain(PlainCollectives& library, bool timed) {
  if (!library.takes_device_arrays()) return;
  const bool leaves = library.can_leave_on_stream();
  if (leaves) library.leave_on_stream(may_leave_ && !timed);
  if (leaves && timed) library.await_left();
  if (!library.knows_streams() || (leaves && timed)) buffers_.finish();
}

Memory::SegmentBytes DeviceMemory::segment_bytes() const { return segment_bytes_on_device; }

namespace {

cudaPointerAttributes attributes_of(const void* p) {
  cudaPointerAttributes found{};
  if (p == nullptr || cudaPointerGetAttributes(&found, p) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    found = {};
  }
  return found;
}

}  // namespace

void await(Stream stream) {
  refuse_capturing(stream);
  const BesideCaptures beside;
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void let_wait(Stream stream, Stream for_other) {
  refuse_capturing(stream);
  refuse_capturing(for_other);
  const auto mark = mark_in(for_other);
  check_cuda(cudaStreamWaitEvent(stream, mark.get(), 0), "cudaStreamWaitEvent");
}

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t e = cudaStreamIsCapturing(stream, &status);
  if (e == cudaErrorStreamCaptureImplicit) {  // the legacy stream, while one is captured that waits for it
    static_cast<void>(cudaGetLastError());
    return true;
  }
  check_cuda(e, "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

bool is_device_pointer(const void* p) {
  const cudaMemoryType type = attributes_of(p).type;
  return type == cudaMemoryTypeDevice || type == cudaMemoryTypeManaged;
}

bool DeviceMemory::holds(const void* p) const {
  const cudaPointerAttributes found = attributes_of(p);
  return found.devicePointer == p && found.type != cudaMemoryTypeUnregistered;
}

}  // namespace laconic::gpu
