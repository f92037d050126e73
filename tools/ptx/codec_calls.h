// The kernels that encode, decode and add (kernels.cuh), called on host memory: what the programs that run them
// translated have in common. Compiled for one kind of kernel: PTX_DTYPE names its elements, PTX_INTEGER the integers
// that it computes with (f64 has kernels for both widths).
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "codec/slice_cases.h"
#include "gpu/operations.h"
#include "launch.h"

// The kernels: parameters as PTX has them, pointers to where they lie.
void encode_kernel(Lane&, u8*, u8* params, u8* x, u8* sink);
void decode_kernel(Lane&, u8*, u8* params, u8* source, u8* count, u8* y, u8* report);
void sum_kernel(Lane&, u8*, u8* plan, u8* x, u8* sources, u8* pool, u8* sink);

namespace laconic::test {

namespace device = gpu::emulated;  // the types that kernels take are the emulation's, too

using Integer = PTX_INTEGER;
constexpr DType dtype = DType::PTX_DTYPE;
constexpr bool wide = sizeof(Integer) == 8;

constexpr std::size_t shared_bytes = wide ? 133120 : 76800;  // no less than a kernel's regions
constexpr u32 scratch_places = 8;

/// As kernels.cuh has it, which only nvcc reads.
struct Sources {
  device::Source of[gpu::most_operands];
};

/// What kernels are called with; a lane's function has no way to capture it.
struct Arguments {
  slice::Params params;
  const void* x;
  device::Sink sink;
  device::Source source;
  u64 count;
  void* y;
  gpu::Report* report;
  Sources sources;
  gpu::SumPlan plan;
  device::ScratchPool pool;
};
inline Arguments arguments;

inline u64 tiles_of(u64 count) { return (slice::chunks_of(count) + device::tile_warps - 1) / device::tile_warps; }
/// Fewer than in the launcher's, so that they take several tiles.
inline u64 decoding_blocks(u64 count) { return (tiles_of(count) + 2) / 3; }

/// A frame that is written, and what that takes. Tiles are placed two later.
class Written {
 public:
  Written(std::size_t count, std::size_t capacity, const slice::Params& params)
      : tiles_(tiles_of(count)),
        delay_(static_cast<u32>(std::min<u64>(tiles_, 2))),
        out_(capacity),
        kept_((delay_ + 1) * sizeof(device::KeptTile)),
        placed_(delay_ + 1),
        states_(tiles_ + 1) {
    sink_.out = out_.get();
    sink_.capacity = capacity;
    sink_.count = count;
    sink_.states = states_.data();
    sink_.kept = reinterpret_cast<device::KeptTile*>(kept_.get());
    sink_.placed = placed_.data();
    sink_.places = delay_ + 1;
    sink_.delay = delay_;
    sink_.params = params;
    sink_.report = &report_;
  }
  device::Sink sink() { return sink_; }
  u64 blocks() const { return std::max<u64>(1, tiles_) + delay_; }
  std::vector<u8> frame() const {
    if (report_.faults != 0) {
      std::printf("faults %u\n", report_.faults);
      return {};
    }
    return {out_.get(), out_.get() + report_.bytes};
  }

 private:
  u64 tiles_;
  u32 delay_;
  Memory out_, kept_;
  std::vector<u32> placed_;
  std::vector<u64> states_;
  gpu::Report report_;
  device::Sink sink_;
};

/// A frame in the device's memory, and where its chunks begin.
class Held {
 public:
  Held(const std::vector<u8>& frame, std::size_t count) : frame_(frame) {
    u64 place = frame::header_bytes + slice::table_bytes(count);
    for (u64 c = 0; c < slice::chunks_of(count); c++) {
      places_.push_back(place);
      u16 words;
      std::memcpy(&words, &frame[frame::header_bytes + 2 * c], 2);
      place += 4 * words;
    }
    places_.push_back(place);
  }
  device::Source source() { return {frame_.get(), frame_.bytes(), places_.data(), nullptr, 0}; }

 private:
  Memory frame_;
  std::vector<u64> places_;
};

inline std::vector<u8> encoded_by_kernel(const Array& x, const Grid& grid) {
  Memory in(x.size_bytes() + 16);
  std::memcpy(in.get(), x.data(), x.size_bytes());
  arguments.params = slice::params_for(grid, 1);
  Written out(x.count, frame::capacity(x.dtype, x.count), arguments.params);
  arguments.x = in.get();
  arguments.sink = out.sink();
  launch(out.blocks(), shared_bytes, [](Lane& lane) {
    encode_kernel(lane, nullptr, at_argument(arguments.params), at_argument(arguments.x), at_argument(arguments.sink));
  });
  return out.frame();
}

/// Faults.
inline u32 decode_by_kernel(const std::vector<u8>& frame, const Grid& grid, u32 operands, u32 divisor, Array& y) {
  Held held(frame, y.count);
  Memory out(y.size_bytes() + 16);
  gpu::Report report;
  arguments.params = slice::params_for(grid, operands, divisor);
  arguments.source = held.source();
  arguments.count = y.count;
  arguments.y = out.get();
  arguments.report = &report;
  launch(decoding_blocks(y.count), shared_bytes, [](Lane& lane) {
    decode_kernel(lane, nullptr, at_argument(arguments.params), at_argument(arguments.source),
                  at_argument(arguments.count), at_argument(arguments.y), at_argument(arguments.report));
  });
  std::memcpy(y.data(), out.get(), y.size_bytes());
  return report.faults;
}

/// Of x, unless that is null, and frames of values on one grid, each of one operand.
inline std::vector<u8> added_by_kernel(std::size_t count, const Array* x, const Grid& grid,
                                       const std::vector<const std::vector<u8>*>& frames) {
  std::vector<gpu::Operand> operands(frames.size() + (x != nullptr ? 1 : 0), gpu::Operand{grid, 1});
  arguments.plan = gpu::plan_sum(operands, x != nullptr);
  std::vector<std::unique_ptr<Held>> held;
  std::size_t next = x != nullptr ? 1 : 0;
  for (const std::vector<u8>* frame : frames) {
    held.push_back(std::make_unique<Held>(*frame, count));
    arguments.sources.of[next++] = held.back()->source();
  }
  Written out(count, frame::sum_capacity(dtype, count), arguments.plan.result);
  Memory in((x != nullptr ? x->size_bytes() : 0) + 16);
  if (x != nullptr) std::memcpy(in.get(), x->data(), x->size_bytes());
  const u32 scratch_bytes = device::SumScratch<Integer>::bytes(arguments.plan.operands);
  Memory scratch(scratch_places * scratch_bytes);
  u32 taken[scratch_places] = {};
  arguments.x = in.get();
  arguments.pool = {scratch.get(), taken, scratch_places, scratch_bytes};
  arguments.sink = out.sink();
  launch(out.blocks(), shared_bytes, [](Lane& lane) {
    sum_kernel(lane, nullptr, at_argument(arguments.plan), at_argument(arguments.x), at_argument(arguments.sources),
               at_argument(arguments.pool), at_argument(arguments.sink));
  });
  return out.frame();
}

/// But for the checksum, which another kernel makes.
inline bool same(std::vector<u8> a, std::vector<u8> b) {
  for (std::vector<u8>* frame : {&a, &b}) {
    if (frame->size() >= frame::header_bytes) std::memset(&(*frame)[frame::at_crc], 0, 4);
  }
  if (a == b) return true;
  const auto shorter = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  const auto first = std::mismatch(a.begin(), a.begin() + shorter, b.begin()).first - a.begin();
  std::printf("  %zu and %zu bytes, the first that differs is number %zu\n", a.size(), b.size(),
              static_cast<std::size_t>(first));
  return false;
}

}  // namespace laconic::test
