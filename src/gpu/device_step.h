// One step of a kernel on the device, first enqueued and then waited for, on a stream and buffers of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "collective/kernel.h"
#include "frame/frame.h"
#include "gpu/buffers.h"

namespace laconic::gpu {

/// One after the other: begin(), what is enqueued, end(); finished() or abandon() before the next.
class DeviceStep {
 public:
  /// `buffers` must outlive this, and no other step use them meanwhile. threads: of the host, where it checks messages.
  DeviceStep(Buffers& buffers, const Grid& grid, int threads) : buffers_(buffers), grid_(grid), threads_(threads) {}

  [[nodiscard]] Buffers& buffers() const { return buffers_; }
  [[nodiscard]] Stream stream() const { return buffers_.stream(); }
  /// Of the last operation, whose faults are the step's; its report follows on the others'.
  [[nodiscard]] Report* report() const { return buffers_.report(0); }

  /// Of all operations that follow, none needs more of a workspace.
  [[nodiscard]] Workspace begin(std::size_t workspace_bytes);
  /// Brings a message to the device. `i`: which of them this is.
  FrameIn bring(int i, frame::Bytes message, std::size_t count);
  /// Brings plain elements to the device.
  [[nodiscard]] ConstArray bring_plain(ConstArray received);
  /// A copy, which lives until something else is put aside or brought plain.
  ConstArray put_aside(ConstArray x);
  /// For the frame of the last operation, which has at most so many bytes.
  [[nodiscard]] FrameOut room_for(std::size_t capacity);
  /// The same, and that operation decodes it, too.
  [[nodiscard]] FrameOut room_for(std::size_t capacity, MutArray delivered, std::uint32_t divisor);
  /// For an operation before the last one.
  [[nodiscard]] Report* another_report() { return buffers_.report(reports_++); }
  /// Has the frame of so many elements copied to `out` behind the last operation. How long it is, nobody knows yet, so
  /// as much of it as the last one was long, `length`, and something more: the host need not wait twice.
  void fetch(std::size_t count, std::size_t capacity, frame::MutBytes out, double Buffers::Lengths::* length);

  /// All has been enqueued.
  void end() { buffers_.fetch_reports(reports_); }
  /// Waits for what was enqueued, and checks the messages meanwhile; false where the device could not form the sum,
  /// though the host can. Throws Error(corrupt) for a message that is damaged. pause: called again and again.
  bool finished(std::span<const frame::Bytes> messages, const std::function<void()>& pause);
  /// Whether what the last operation decoded, too, is good.
  [[nodiscard]] bool delivered() const { return delivered_; }
  /// The frame of the last operation, which has been fetched and has finished. Returns its bytes.
  std::size_t take(std::size_t count, frame::MutBytes out);
  /// Waits; what was enqueued is of no use.
  void abandon() noexcept;
  /// work(), which enqueues; abandons what it has enqueued where it throws: copies of messages may be under way.
  template <typename Work>
  auto abandoning(Work&& work) {
    try {
      return work();
    } catch (...) {
      abandon();
      throw;
    }
  }

 private:
  Buffers& buffers_;
  Grid grid_;
  int threads_;
  int reports_ = 1;            ///< that the step has used
  int delivering_ = 0;         ///< the report of what is decoded, too; 0: nothing is
  bool delivered_ = false;     ///< and that has gone well
  std::uint64_t written_ = 0;  ///< bytes of the frame
  double* length_ = nullptr;   ///< of such frames
  std::size_t fetched_ = 0;    ///< bytes of it that were copied before that was known
};

}  // namespace laconic::gpu
