// The host's side of the codec: checks arguments, cuts workspaces, launches.
#include <algorithm>
#include <array>
#include <string>

#include "codec/slice/slice.h"
#include "core/error.h"
#include "gpu/checksum.h"
#include "gpu/codec.h"
#include "gpu/kernels.cuh"
#include "gpu/launch.h"

namespace laconic::gpu {
namespace {

using namespace on_device;

__global__ void __launch_bounds__(tile_threads) locate_kernel(const __grid_constant__ Location at) {
  __shared__ TileShared shared;
  run_locate(Tile(), blockIdx.x, at, shared);
}

__global__ void __launch_bounds__(tile_threads, 2)
    checksum_kernel(const std::uint8_t* frame, std::uint64_t readable, const __grid_constant__ ChecksumPowers powers,
                    std::uint32_t* crc) {
  __shared__ RowTable table;
  run_checksum(Tile(), blockIdx.x, gridDim.x, powers, frame, readable, table, crc);
}

/// A frame that says it is longer than what is there, or a length that none has, has no checksum that could match.
__global__ void compare_kernel(const std::uint8_t* frame, std::uint64_t readable, const std::uint32_t* crc,
                               Report* report) {
  const std::uint64_t bytes = load64(frame + frame::at_bytes);
  if (bytes > readable || bytes < frame::header_bytes || bytes % 4 != 0 || load32(frame + frame::at_crc) != *crc)
    or_shared(&report->faults, fault_bit(Fault::corrupt));
}

const KernelSet& kernels_for(const Params& p) {
  switch (p.grid.dtype) {
    case DType::f32:
      return kernels_f32();
    case DType::f64:
      return p.wide ? kernels_f64_wide() : kernels_f64();
    case DType::f16:
      return kernels_f16();
    case DType::bf16:
      return kernels_bf16();
    default:
      throw Error(Code::unsupported,
                  "gpu: dtype " + std::string(name_of(p.grid.dtype)) + " is not coded on the device");
  }
}

/// Cuts pieces off a workspace. With no memory behind it, only counts.
class Cutter {
 public:
  explicit Cutter(std::uint8_t* data = nullptr) : data_(data) {}
  template <class T>
  T* cut(std::size_t n) {
    const std::size_t at = used_;
    used_ += (n * sizeof(T) + 15) & ~std::size_t{15};
    return data_ == nullptr ? nullptr : reinterpret_cast<T*>(data_ + at);
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::uint8_t* data_;
  std::size_t used_ = 0;
};

/// What a call needs of its workspace; what must be zero at first comes first.
struct Layout {
  std::uint64_t* states = nullptr;
  std::array<std::uint64_t*, most_operands> located_states{};
  std::uint32_t* crc = nullptr;
  std::uint32_t* taken = nullptr;
  std::size_t zeros = 0;
  std::array<std::uint64_t*, most_operands> offsets{};
  std::uint64_t* written = nullptr;  ///< offsets in the result
  KeptTile* kept = nullptr;
  std::uint32_t* placed = nullptr;
  std::uint8_t* scratch = nullptr;
  std::size_t bytes = 0;
};

/// Thread blocks that work on tile after tile: more than a device has room for. Those that come late find nothing left.
std::uint64_t working_blocks(std::uint64_t chunks) {
  constexpr std::uint64_t most = 512;
  return std::min(tiles_of(chunks, tile_warps), most);
}

/// How many tiles later one is placed: more than are under way at once. As many again have been placed when theirs are
/// needed.
constexpr std::uint64_t most_delay = 512;
std::uint64_t kept_places(std::uint64_t chunks) { return std::min(tiles_of(chunks, tile_warps), 2 * most_delay); }

/// Warps that can have scratch memory at once; more have to wait for it.
constexpr std::size_t most_scratch_places = 1024;
std::size_t scratch_places(std::size_t count) {
  return std::clamp<std::size_t>(slice::chunks_of(count), 1, most_scratch_places);
}

Layout lay_out(std::size_t count, bool writes, int frames, std::size_t scratch_bytes, void* memory) {
  Layout l;
  Cutter c(static_cast<std::uint8_t*>(memory));
  const std::uint64_t chunks = slice::chunks_of(count);
  if (writes) l.states = c.cut<std::uint64_t>(tiles_of(chunks, tile_warps));
  for (int j = 0; j < frames; ++j) l.located_states[j] = c.cut<std::uint64_t>(tiles_of(chunks, located_by_tile));
  if (writes) l.placed = c.cut<std::uint32_t>(kept_places(chunks));
  l.crc = c.cut<std::uint32_t>(1);
  if (scratch_bytes > 0) l.taken = c.cut<std::uint32_t>(scratch_places(count));
  l.zeros = c.used();
  for (int j = 0; j < frames; ++j) l.offsets[j] = c.cut<std::uint64_t>(chunks + 1);
  if (writes) l.written = c.cut<std::uint64_t>(chunks + 1);
  if (writes) l.kept = c.cut<KeptTile>(kept_places(chunks));
  if (scratch_bytes > 0) l.scratch = c.cut<std::uint8_t>(scratch_places(count) * scratch_bytes);
  l.bytes = c.used();
  return l;
}

void require_array(const void* data, std::size_t count, DType dtype, const Grid& grid, const char* what) {
  if (dtype != grid.dtype)
    throw Error(Code::invalid_argument, std::string(what) + ": dtype " + std::string(name_of(dtype)) +
                                            ", but the grid is one for " + std::string(name_of(grid.dtype)));
  if (count > 0) require_aligned(data, size_of(dtype), what);
}

void require_divisor(std::uint32_t divisor, const Grid& grid) {
  if (divisor == 0 || (divisor != 1 && grid.lossless()))
    throw Error(Code::invalid_argument,
                "divisor: " + std::to_string(divisor) + " works for frames with a step only, and not 0");
}

/// Clears what lies in one piece from the first of these reports on, or apart.
void clear(Report* report, Report* of_values, Workspace workspace, std::size_t zeros, Stream stream) {
  const auto zero = [&](void* from, std::size_t bytes) {
    check_cuda(cudaMemsetAsync(from, 0, bytes, stream), "cudaMemsetAsync");
  };
  if (report + 1 != workspace.data) {
    zero(workspace.data, zeros);
    zeros = 0;
  }
  if (of_values != nullptr && of_values + 1 == report) return zero(of_values, 2 * sizeof(Report) + zeros);
  zero(report, sizeof(Report) + zeros);
  if (of_values != nullptr) zero(of_values, sizeof(Report));
}

/// Clears what a call counts in, and its reports.
Layout begin(std::size_t count, bool writes, int frames, std::size_t scratch_bytes, Workspace workspace, Report* report,
             Stream stream, Report* of_values = nullptr) {
  require_aligned(workspace.data, 16, "workspace");
  require_aligned(report, 8, "report");
  const Layout l = lay_out(count, writes, frames, scratch_bytes, workspace.data);
  if (workspace.bytes < l.bytes)
    throw Error(Code::too_small, "workspace: " + std::to_string(workspace.bytes) + " bytes, but the call needs " +
                                     std::to_string(l.bytes));
  clear(report, of_values, workspace, l.zeros, stream);
  return l;
}

/// Finds the chunks of a frame.
Source locate(const FrameIn& in, std::size_t count, std::uint64_t* offsets, std::uint64_t* states, Report* report,
              Stream stream) {
  require_aligned(in.data, 16, "frame");
  Location at{in.data, in.readable, count, slice::params_for(in.grid, in.operands), offsets, states, report};
  launch<1>(reinterpret_cast<const void*>(&locate_kernel), tiles_of(slice::chunks_of(count), located_by_tile), 0, {&at},
            stream);
  return {in.data, in.readable, offsets, nullptr, 0};
}

void launch_checksum(const std::uint8_t* frame, std::uint64_t readable, std::uint32_t* crc, Stream stream) {
  static constexpr ChecksumPowers powers = checksum_powers();
  constexpr std::uint64_t most_blocks = 256;  // about as many as a device has room for at once
  constexpr std::uint64_t words_of_a_block = tile_warps * least_checksum_span;
  ChecksumPowers p = powers;
  const std::uint64_t blocks = std::min(most_blocks, tiles_of(readable / 4, words_of_a_block));
  launch<4>(reinterpret_cast<const void*>(&checksum_kernel), blocks, 0, {&frame, &readable, &p, &crc}, stream);
}

void require_room(const FrameOut& out, std::size_t count, const Grid& grid) {
  require_aligned(out.data, 16, "out");
  if (out.values.report != nullptr) {
    require_aligned(out.values.report, 8, "out.values.report");
    require_array(out.values.y.data, out.values.y.count, out.values.y.dtype, grid, "out.values");
    require_divisor(out.values.divisor, grid);
    if (out.values.y.count != count) throw Error(Code::invalid_argument, "out.values: another count than the frame's");
  }
  if (out.capacity < frame::header_bytes + slice::table_bytes(count))
    throw Error(Code::too_small, "out: " + std::to_string(out.capacity) + " bytes cannot hold the frame");
}

Sink frame_sink(const FrameOut& out, std::size_t count, const Params& p, const Layout& l, Report* report) {
  const std::uint64_t tiles = tiles_of(slice::chunks_of(count), tile_warps);
  Sink sink;
  sink.out = out.data;
  sink.capacity = out.capacity;
  sink.count = count;
  sink.states = l.states;
  sink.kept = l.kept;
  sink.placed = l.placed;
  if (out.values.report != nullptr) sink.offsets = l.written;
  sink.places = static_cast<std::uint32_t>(kept_places(slice::chunks_of(count)));
  sink.delay = static_cast<std::uint32_t>(std::min(tiles, most_delay));
  sink.params = p;
  sink.report = report;
  return sink;
}

/// The last tiles are placed by blocks that make none.
std::uint64_t writing_blocks(const Sink& sink) {
  return tiles_of(slice::chunks_of(sink.count), tile_warps) + sink.delay;
}

void launch_encode(ConstArray x, Params& p, Sink& sink, Stream stream) {
  const KernelSet& k = kernels_for(p);
  launch<3>(k.encode, writing_blocks(sink), k.shared_bytes, {&p, &x.data, &sink}, stream);
}

void launch_decode(Params& p, Source& source, MutArray y, Report* report, Stream stream) {
  const KernelSet& k = kernels_for(p);
  std::uint64_t count = y.count;
  if (count == 0) return;
  launch<5>(k.decode, working_blocks(slice::chunks_of(count)), k.shared_bytes,
            {&p, &source, &count, &y.data, &report}, stream);
}

/// What is still to be done behind its chunks.
void finish_frame(const FrameOut& out, const Sink& sink, Stream stream) {
  if (out.checksum)
    launch_checksum(out.data, out.capacity, reinterpret_cast<std::uint32_t*>(out.data + frame::at_crc), stream);
  if (out.values.report == nullptr) return;
  Params p = slice::params_for(sink.params.grid, sink.params.operands, out.values.divisor);
  Source source{out.data, out.capacity, sink.offsets, nullptr, 0};
  launch_decode(p, source, out.values.y, out.values.report, stream);
}

void launch_sum(SumPlan& plan, ConstArray x, std::span<const FrameIn> in, std::size_t count, const FrameOut& out,
                Workspace workspace, Report* report, Stream stream) {
  const KernelSet& k = kernels_for(plan.result);
  const std::size_t scratch_bytes = k.scratch_bytes(plan.operands);
  require_room(out, count, plan.result.grid);
  const Layout l = begin(count, true, plan.operands, scratch_bytes, workspace, report, stream, out.values.report);
  const std::size_t first = plan.local ? 1 : 0;
  Sources sources;
  for (std::size_t j = 0; j < in.size(); ++j)
    sources.of[first + j] = locate(in[j], count, l.offsets[first + j], l.located_states[first + j], report, stream);
  ScratchPool pool{l.scratch, l.taken, static_cast<std::uint32_t>(scratch_places(count)),
                   static_cast<std::uint32_t>(scratch_bytes)};
  Sink sink = frame_sink(out, count, plan.result, l, report);
  launch<5>(k.sum, writing_blocks(sink), k.shared_bytes,
            {&plan, &x.data, &sources, &pool, &sink}, stream);
  finish_frame(out, sink, stream);
}

}  // namespace

bool can_code(const Grid& grid, std::uint64_t operands) {
  if (!is_float(grid.dtype)) return false;
  if (!needs_wide_integers(grid, operands)) return true;
  const KernelSet& k = kernels_f64_wide();
  return allow_shared(k.encode, k.shared_bytes) && allow_shared(k.decode, k.shared_bytes) &&
         allow_shared(k.sum, k.shared_bytes);
}

void load_codec() {
  load(reinterpret_cast<const void*>(&locate_kernel));
  load(reinterpret_cast<const void*>(&checksum_kernel));
  load(reinterpret_cast<const void*>(&compare_kernel));
  for (const KernelSet* k : {&kernels_f32(), &kernels_f64(), &kernels_f64_wide(), &kernels_f16(), &kernels_bf16()})
    for (const void* kernel : {k->encode, k->decode, k->sum}) load(kernel);
}

std::uint32_t slot_capacity(DType dtype) {
  return static_cast<std::uint32_t>((slice::chunk_capacity(static_cast<int>(size_of(dtype))) + 15) & ~std::size_t{15});
}

std::size_t encode_workspace(std::size_t count) { return lay_out(count, true, 0, 0, nullptr).bytes; }
std::size_t decode_workspace(std::size_t count) { return lay_out(count, false, 1, 0, nullptr).bytes; }
std::size_t sum_workspace(DType dtype, std::size_t count, std::size_t operands) {
  const int n = static_cast<int>(std::min<std::size_t>(operands, most_operands));
  const KernelSet& k = dtype == DType::f64 ? kernels_f64_wide() : kernels_f32();
  return lay_out(count, true, n, k.scratch_bytes(n), nullptr).bytes;
}

void encode(ConstArray x, const Grid& grid, const FrameOut& out, Workspace workspace, Report* report, Stream stream) {
  require_array(x.data, x.count, x.dtype, grid, "x");
  Params p = slice::params_for(grid, 1);
  kernels_for(p);  // refuses a dtype before anything is enqueued
  require_room(out, x.count, grid);
  const Layout l = begin(x.count, true, 0, 0, workspace, report, stream, out.values.report);
  Sink sink = frame_sink(out, x.count, p, l, report);
  launch_encode(x, p, sink, stream);
  finish_frame(out, sink, stream);
}

void encode(ConstArray x, const Grid& grid, const SlotsOut& out, Report* report, Stream stream) {
  require_array(x.data, x.count, x.dtype, grid, "x");
  require_aligned(report, 8, "report");
  if (out.slot_bytes % 16 != 0 || out.slot_bytes == 0)
    throw Error(Code::invalid_argument, "slot_bytes: " + std::to_string(out.slot_bytes) + " is no multiple of 16");
  Params p = slice::params_for(grid, 1);
  kernels_for(p);
  check_cuda(cudaMemsetAsync(report, 0, sizeof *report, stream), "cudaMemsetAsync");
  if (x.count == 0) return;
  require_aligned(out.data, 16, "out");
  require_aligned(out.sizes, 2, "sizes");
  Sink sink;
  sink.out = out.data;
  sink.count = x.count;
  sink.sizes = out.sizes;
  sink.slot_bytes = out.slot_bytes;
  sink.params = p;
  sink.report = report;
  launch_encode(x, p, sink, stream);
}

void decode(const FrameIn& in, MutArray y, Workspace workspace, Report* report, Stream stream, std::uint32_t divisor) {
  require_array(y.data, y.count, y.dtype, in.grid, "y");
  require_divisor(divisor, in.grid);
  Params p = slice::params_for(in.grid, in.operands, divisor);
  kernels_for(p);
  const Layout l = begin(y.count, false, 1, 0, workspace, report, stream);
  Source source = locate(in, y.count, l.offsets[0], l.located_states[0], report, stream);
  launch_decode(p, source, y, report, stream);
}

void decode(const SlotsIn& in, MutArray y, Report* report, Stream stream) {
  require_array(y.data, y.count, y.dtype, in.grid, "y");
  require_aligned(report, 8, "report");
  Params p = slice::params_for(in.grid, 1);
  kernels_for(p);
  check_cuda(cudaMemsetAsync(report, 0, sizeof *report, stream), "cudaMemsetAsync");
  if (y.count == 0) return;
  require_aligned(in.data, 16, "slots");
  require_aligned(in.sizes, 2, "sizes");
  if (in.slot_bytes % 16 != 0)
    throw Error(Code::invalid_argument, "slot_bytes: " + std::to_string(in.slot_bytes) + " is no multiple of 16");
  Source source{in.data, slice::chunks_of(y.count) * in.slot_bytes, nullptr, in.sizes, in.slot_bytes};
  launch_decode(p, source, y, report, stream);
}

void sum(std::span<const FrameIn> in, std::size_t count, const FrameOut& out, Workspace workspace, Report* report,
         Stream stream) {
  std::array<Operand, most_operands> of;
  if (in.size() > of.size()) throw Error(Code::invalid_argument, "in: more than 8 frames");
  for (std::size_t j = 0; j < in.size(); ++j) of[j] = {in[j].grid, in[j].operands};
  SumPlan plan = plan_sum({of.data(), in.size()}, false);
  launch_sum(plan, {}, in, count, out, workspace, report, stream);
}

void encode_sum(ConstArray x, std::span<const FrameIn> in, const FrameOut& out, Workspace workspace, Report* report,
                Stream stream) {
  std::array<Operand, most_operands> of;
  if (in.empty() || in.size() >= of.size()) throw Error(Code::invalid_argument, "in: 1 to 7 frames");
  require_array(x.data, x.count, x.dtype, in[0].grid, "x");
  of[0] = {in[0].grid, 1};
  for (std::size_t j = 0; j < in.size(); ++j) of[j + 1] = {in[j].grid, in[j].operands};
  SumPlan plan = plan_sum({of.data(), in.size() + 1}, true);
  launch_sum(plan, x, in, x.count, out, workspace, report, stream);
}

void check(const FrameIn& in, Workspace workspace, Report* report, Stream stream) {
  require_aligned(in.data, 16, "frame");
  if (in.readable < frame::header_bytes) throw Error(Code::corrupt, "frame: shorter than a header");
  const Layout l = begin(0, false, 1, 0, workspace, report, stream);
  launch_checksum(in.data, in.readable, l.crc, stream);
  const std::uint8_t* data = in.data;
  std::uint64_t readable = in.readable;
  std::uint32_t* crc = l.crc;
  launch<4>(reinterpret_cast<const void*>(&compare_kernel), dim3(1), dim3(1), 0, {&data, &readable, &crc, &report},
            stream);
}

void copy_report(const Report* from, Report* to_pinned, Stream stream) {
  check_cuda(cudaMemcpyAsync(to_pinned, from, sizeof *from, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
}

}  // namespace laconic::gpu
