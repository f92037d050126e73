// The slice codec's kernels for arrays in device memory: a collective's messages are made there and come to the host
// compressed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/budget.h"
#include "collective/kernel.h"
#include "collective/memory.h"
#include "gpu/buffers.h"

namespace laconic::gpu {

/// For movement and for sums and averages on the grid (as MovementKernel and GridReductionKernel, with the same bytes).
/// f32, f64, f16, bf16. Everything is done when a call returns.
class DeviceKernel : public Kernel {
 public:
  enum class Work : std::uint8_t { movement, sum };

  /// `memory` and `buffers` must outlive this. Decoding divides by `divisor`. threads: of the host, where it has to
  /// help.
  DeviceKernel(Work work, Memory& memory, Buffers& buffers, std::vector<ConstArray> operands,
               std::vector<MutArray> results, const Budget& budget, std::uint32_t divisor, int threads);

  [[nodiscard]] std::size_t element_bytes() const override { return size_of(grid_.dtype); }
  [[nodiscard]] std::size_t capacity(std::size_t values) const override;
  std::size_t encode(const Part& part, frame::MutBytes out) override;
  [[nodiscard]] bool delivers_as_it_encodes() const override { return work_ == Work::movement; }
  std::size_t encode_final(const Part& part, frame::MutBytes out) override;
  std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) override;
  [[nodiscard]] std::size_t most_addends() const override { return work_ == Work::sum ? most_operands - 1 : 1; }
  std::size_t sum(const Part& part, std::optional<frame::Bytes> held, std::span<const frame::Bytes> received,
                  frame::MutBytes out) override;
  [[nodiscard]] bool delivers_as_it_adds() const override { return work_ == Work::sum; }
  std::size_t sum_final(const Part& part, std::optional<frame::Bytes> held, std::span<const frame::Bytes> received,
                        frame::MutBytes out, bool sent_on) override;
  std::size_t add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) override;
  void read_plain(const Part& part, bool of_result, frame::MutBytes out) override;
  void deliver_plain(const Part& part, frame::Bytes elements) override;
  void keep(const Part& part) override;
  void deliver(const Part& part, frame::Bytes message) override;

 protected:
  /// An operation begins: of all that it enqueues, nothing needs more of a workspace.
  [[nodiscard]] Workspace begin(std::size_t workspace_bytes);
  /// Brings a message to the device. `i`: which of them this is.
  FrameIn bring(int i, frame::Bytes message, std::size_t count);
  /// Brings plain elements to the device.
  [[nodiscard]] ConstArray bring_plain(ConstArray received);
  [[nodiscard]] FrameOut room_for(std::size_t count);
  /// The same for the last step, whose frame is decoded, too.
  [[nodiscard]] FrameOut room_for(const Part& delivered);
  /// For what is enqueued before the last step, whose report is the first one.
  [[nodiscard]] Report* another_report() { return buffers_.report(reports_++); }
  /// Has the frame of so many elements copied to `out` behind the last step. How long it is, nobody knows yet, so as
  /// much of it as the last one was long, `length` bytes an element, and something more: the host need not wait twice.
  void fetch(std::size_t count, frame::MutBytes out, double& length);
  /// Waits for what was enqueued, and checks the messages meanwhile; false where the device could not form the sum,
  /// though the host can. Throws Error(corrupt) for a message that is damaged.
  bool finished(std::span<const frame::Bytes> messages);
  /// The result of the last step, which has been fetched and has finished.
  std::size_t take(std::size_t count, frame::MutBytes out);

  Buffers& buffers_;
  Grid grid_;

 private:
  /// What becomes of a sum: a message, the result, or both.
  struct Fate {
    const Part* delivered = nullptr;
    bool sent_on = true;
  };
  /// x, where there is one, and messages, in this order. 0: it has been delivered and is no message.
  std::size_t sum_of(std::optional<ConstArray> x, std::span<const frame::Bytes> messages, std::size_t count,
                     frame::MutBytes out, Fate fate);
  std::size_t sum_of(const Part& part, std::optional<frame::Bytes> held, std::span<const frame::Bytes> received,
                     frame::MutBytes out, Fate fate);
  /// Enqueues a copy, which lives until something else goes by way of Buffers::elements.
  ConstArray put_aside(ConstArray x);
  std::size_t sum_on_host(std::optional<ConstArray> x, std::span<const frame::Bytes> messages, frame::MutBytes out);

  Work work_;
  Memory& memory_;
  std::size_t sum_chunk_;
  std::uint32_t divisor_;
  int threads_;
  int reports_ = 1;            ///< that the operation has used
  int delivering_ = 0;         ///< the report of what is decoded at once; 0: nothing is
  bool delivered_ = false;     ///< and that has gone well
  std::uint64_t written_ = 0;  ///< bytes of the last frame
  double* length_ = nullptr;   ///< of such frames
  std::size_t fetched_ = 0;    ///< bytes of it that were copied before that was known
};

}  // namespace laconic::gpu
