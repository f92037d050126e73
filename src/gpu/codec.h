// The slice codec on device memory: encode, decode, add. The bytes are those that frame/frame.h writes and reads, for
// the same elements and grid. f32, f64, f16 and bf16; other dtypes are Error(unsupported).
//
// All calls only enqueue work on a stream: they allocate nothing, wait for nothing and may be captured into a CUDA
// graph. Arrays, frames and workspaces lie in device memory of the current device, and belong to the caller until the
// stream has come past the call. A call's result is known then, too: in the Report that it leaves in device memory.
// Thread safe; calls that share a workspace, an output or a report must follow each other on a stream.
//
// Alignment: arrays to their elements (16 bytes is much faster), frames, slots and workspaces to 16 bytes.
// Errors of arguments and of launching are thrown as Error; what only the device finds out is a Fault in the Report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/grid.h"
#include "core/array.h"
#include "gpu/faults.h"
#include "gpu/stream.h"

namespace laconic::gpu {

/// Memory of a call's own, at least as large as its ..._workspace() says. What it holds does not matter before or
/// after. Where the call's report lies right before it, and that of Values before this, one memset clears all.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Where a frame's values go that is decoded as soon as it has been written, which saves finding its chunks. Faults of
/// that are in a report of its own.
struct Values {
  MutArray y;
  Report* report = nullptr;  ///< null: it is not decoded
  std::uint32_t divisor = 1;
};

/// Where a frame is to be written.
struct FrameOut {
  std::uint8_t* data = nullptr;
  std::size_t capacity = 0;  ///< frame::capacity() or sum_capacity() is always enough; less can be a Fault(too_small)
  bool checksum = true;      ///< without it, the header's checksum is 0, and only the device takes the frame
  Values values{};
};

/// A frame to be read, and what it is announced to be; another one is a Fault(corrupt). The checksum is not looked at:
/// see check().
struct FrameIn {
  const std::uint8_t* data = nullptr;
  std::size_t readable = 0;  ///< bytes there: the frame's or more
  Grid grid;
  std::uint32_t operands = 1;
};

/// Chunks that are not packed: chunk c (2048 elements) lies at data + c * slot_bytes and has 4 * sizes[c] bytes.
struct SlotsOut {
  std::uint8_t* data = nullptr;
  std::uint16_t* sizes = nullptr;
  std::uint32_t slot_bytes = 0;  ///< a multiple of 16; slot_capacity() is always enough
};
struct SlotsIn {
  const std::uint8_t* data = nullptr;
  const std::uint16_t* sizes = nullptr;
  std::uint32_t slot_bytes = 0;
  Grid grid;
};

/// Whether the current device has kernels for this grid and sums of so many arrays on it. Integers of 64 bits
/// (needs_wide_integers()) take more shared memory than some devices give a block: those of compute capability 8.6, 8.9
/// and 12.x. Where it has none, calls throw Error(unsupported).
bool can_code(const Grid& grid, std::uint64_t operands);

/// Has the current device load all kernels. CUDA would load each when it is first launched, and may wait for the device
/// then, where a kernel of NCCL's may be waiting for what this thread is about to send.
void load_codec();

/// The most bytes of a chunk of an array, rounded up to 16.
std::uint32_t slot_capacity(DType dtype);

std::size_t encode_workspace(std::size_t count);
std::size_t decode_workspace(std::size_t count);
/// For `operands` arrays and streams in all.
std::size_t sum_workspace(DType dtype, std::size_t count, std::size_t operands);

/// Encodes x on grid into one frame. report->bytes becomes its size.
void encode(ConstArray x, const Grid& grid, const FrameOut& out, Workspace workspace, Report* report, Stream stream);

/// Encodes x on grid into slots: faster, for a next step that gathers anyway.
void encode(ConstArray x, const Grid& grid, const SlotsOut& out, Report* report, Stream stream);

/// Decodes a frame of y.count elements of y.dtype to y. divisor > 1 gives averages (frames with a step only).
void decode(const FrameIn& in, MutArray y, Workspace workspace, Report* report, Stream stream,
            std::uint32_t divisor = 1);
void decode(const SlotsIn& in, MutArray y, Report* report, Stream stream);

/// out = ((in[0] + in[1]) + in[2]) + ... with frame::add's bytes; 2 to 8 frames of `count` elements on the same points.
/// out overlaps no operand. Throws what plan_sum() throws.
void sum(std::span<const FrameIn> in, std::size_t count, const FrameOut& out, Workspace workspace, Report* report,
         Stream stream);
/// out = (encode(x, in[0].grid) + in[0]) + in[1] + ...: for one frame, what frame::encode_add gives. 1 to 7 frames.
void encode_sum(ConstArray x, std::span<const FrameIn> in, const FrameOut& out, Workspace workspace, Report* report,
                Stream stream);

/// Compares a frame's checksum with its bytes: Fault(corrupt) where it does not match. decode_workspace(0) is enough.
void check(const FrameIn& in, Workspace workspace, Report* report, Stream stream);

/// Copies the report to pinned host memory when the stream comes to it.
void copy_report(const Report* from, Report* to_pinned, Stream stream);

}  // namespace laconic::gpu
