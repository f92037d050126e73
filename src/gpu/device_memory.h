// Arrays in the memory of a GPU, for a communicator: its collectives then take device pointers.
//
//   gpu::DeviceMemory memory;
//   Communicator comm(transport, options, memory);
//   memory.use(stream);                       // what the stream has been given before is waited for
//   allreduce(send, recv, Op::sum, comm);     // arrays in device memory; complete on return
//
// Messages lie in the host's memory, pinned as far as they are usually long: only compressed bytes cross PCIe, and any
// transport can carry them, one that knows nothing of GPUs too. f32, f64, f16 and bf16 are coded by the device where
// data moves or is summed on the grid; the rest (integers, exact sums, other codecs, grids that the device has no
// kernels for) is copied and done by the host's code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collective/memory.h"
#include "gpu/buffers.h"
#include "gpu/codec.h"

namespace laconic::gpu {

/// Whether the pointer is one to device (or managed) memory.
bool is_device_pointer(const void* p);

/// Whether the stream is being captured into a graph, or work on it would break a capture. Throws Error for what is no
/// stream.
bool is_capturing(Stream stream);

/// Until what the stream has been given is done. Throws Error(unsupported) while it is being captured.
void await(Stream stream);

/// Lets the stream wait for what the other one has been given. Throws Error(unsupported) while one is being captured.
void let_wait(Stream stream, Stream for_other);

/// Of the device that is current where it is made; it must be current in every call.
class DeviceMemory final : public Memory {
 public:
  DeviceMemory();
  ~DeviceMemory() override;

  /// All work goes to this stream (the caller's, which must outlive its use) from now on; null: the default stream.
  /// Throws Error(unsupported) while the stream is being captured: a collective cannot be part of a graph, since the
  /// host must know how long messages are.
  void use(Stream stream);
  [[nodiscard]] Stream stream() const { return buffers_.stream(); }

  [[nodiscard]] bool on_host() const override { return false; }
  /// Whatever kernels reach at the same address: pinned memory of the host too, which NCCL takes as well.
  [[nodiscard]] bool holds(const void* p) const override;
  /// With a stream of its own.
  [[nodiscard]] std::unique_ptr<Memory> for_another_thread() override;
  /// After what the stream has been given. Throws Error(unsupported) while that is being captured.
  [[nodiscard]] After after_all_so_far() override;
  Room array_room(std::size_t bytes) override;
  Room message_room(std::size_t bytes) override;
  Room copy_room(std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void begin_copy(void* to, const void* from, std::size_t bytes) override;
  void fetch_sample(ConstArray x, void* to) override;
  Range scan(ConstArray x, int threads) override;
  Outliers count_outliers(ConstArray x, double limit, double fill) override;
  void divide(MutArray x, int by) override;
  std::unique_ptr<Kernel> movement(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                   const Budget& budget, int threads) override;
  std::unique_ptr<Kernel> reduction(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results,
                                    const Budget& budget, Summands summands, int threads) override;
  PlainCollectives* plain(Transport& transport) override;
  void before_call(Transport& transport) override;
  void before_plain(PlainCollectives& library, bool timed) override;
  /// Whether short plain calls may be left on the stream; they may at first.
  void let_leave(bool may) { may_leave_ = may; }
  [[nodiscard]] SegmentBytes segment_bytes() const override;

 private:
  void fetch(const void* from, std::size_t bytes, void* to);

  [[nodiscard]] Lanes lanes() { return {buffers_, second_}; }

  std::optional<OwnStream> own_stream_;  ///< where the work is not the caller's
  Buffers buffers_;
  OwnStream second_stream_;
  Buffers second_;
  std::unique_ptr<PlainCollectives> staged_;  ///< of the last transport whose library wants arrays on the host
  PlainCollectives* staged_over_ = nullptr;
  bool may_leave_ = true;
};

}  // namespace laconic::gpu
