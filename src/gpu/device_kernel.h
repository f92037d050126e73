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
#include "gpu/device_step.h"

namespace laconic::gpu {

/// For movement and for sums and averages on the grid (as MovementKernel and GridReductionKernel, with the same bytes).
/// f32, f64, f16, bf16. Everything is done when a call returns. What is begun ahead of its call works beside the call
/// before it: of a segment's time the most is that nothing on the device takes long, but one thing waits for the other.
class DeviceKernel : public Kernel {
 public:
  enum class Work : std::uint8_t { movement, sum };

  /// `memory` and the lanes' buffers must outlive this. Decoding divides by `divisor`. threads: of the host, where it
  /// has to help.
  DeviceKernel(Work work, Memory& memory, const Lanes& lanes, std::vector<ConstArray> operands,
               std::vector<MutArray> results, const Budget& budget, std::uint32_t divisor, int threads);
  ~DeviceKernel() override;

  [[nodiscard]] std::size_t element_bytes() const override { return size_of(grid_.dtype); }
  [[nodiscard]] std::size_t capacity(std::size_t values) const override;
  /// Not where a part of the result is written over the operand of another part, as MPI has a result at the front of
  /// the operand: what is written when, the pipeline knows only of calls that follow each other.
  [[nodiscard]] bool begins() const override { return begins_; }
  void begin(const Task& task) noexcept override;
  void forget() noexcept override;
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
  /// For those who begin nothing ahead.
  [[nodiscard]] DeviceStep& step() { return lanes_[0].step; }
  bool finished(DeviceStep& step, std::span<const frame::Bytes> messages) {
    return step.finished(messages, [this] { pause(); });
  }

  Grid grid_;

 private:
  struct Lane {
    DeviceStep step;
    std::optional<Task> begun{};
    std::optional<ConstArray> x{};  ///< a sum's first operand, if that is an array
  };

  [[nodiscard]] Lane* lane_of(const Task& task);
  [[nodiscard]] Lane* free_lane();
  void enqueue(Lane& lane, const Task& task);
  void enqueue_encode(DeviceStep& step, const Task& task);
  /// x, where there is one, and what is held or received.
  void enqueue_sum(Lane& lane, std::optional<ConstArray> x, const Task& task);
  void enqueue_deliver(DeviceStep& step, const Task& task);
  /// Waits. Returns the bytes of its message; 0: it has been delivered and is no message.
  std::size_t complete(Lane& lane, const Task& task);
  std::size_t complete_encode(DeviceStep& step, const Task& task);
  std::size_t complete_sum(Lane& lane, const Task& task);
  void complete_deliver(DeviceStep& step, const Task& task);
  std::size_t run(const Task& task);
  std::size_t sum_on_host(std::optional<ConstArray> x, std::span<const frame::Bytes> messages, frame::MutBytes out);

  Work work_;
  Memory& memory_;
  std::size_t sum_chunk_;
  std::uint32_t divisor_;
  int threads_;
  Lane lanes_[2];
  bool begins_;
  bool in_order_ = false;  ///< the second lane comes after what the caller's stream had when this was made
};

}  // namespace laconic::gpu
