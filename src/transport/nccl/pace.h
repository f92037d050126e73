// How much travels in one group: what takes about a millisecond. A group costs a tenth of that beside its bytes, while
// others travel, and what a rank sends on waits for those that are under way. How fast messages come is measured
// by those who get them, since systems take more from a sender than its link has carried; the slowest says how much all
// send.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace laconic::nccl {

class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t least_share = std::size_t{512} << 10;
  static constexpr std::size_t most_share = std::size_t{256} << 20;

  /// A group that was issued at `begin` and brought `bytes` to this rank is through. In the order of their ends.
  void note(std::size_t bytes, Time begin, Time end) {
    if (bytes < least_measured) return;
    const std::chrono::duration<double> took = end - std::max(begin, last_end_);
    last_end_ = end;
    const double kept = std::exp2(-took / half_forgotten);
    bytes_ = kept * bytes_ + static_cast<double>(bytes);
    seconds_ = kept * seconds_ + std::max(took.count(), 1e-6);
  }

  /// At which messages come to this rank, in bytes a second; 0: not known yet.
  [[nodiscard]] std::uint64_t rate() const { return seconds_ > 0 ? static_cast<std::uint64_t>(bytes_ / seconds_) : 0; }

  /// Bytes that a rank sends in a round when the slowest gets so many a second.
  [[nodiscard]] static std::size_t share_at(std::uint64_t rate) {
    return std::clamp(static_cast<std::size_t>(rate / 1000), least_share, most_share);
  }

 private:
  static constexpr std::size_t least_measured = std::size_t{256} << 10;  // of less it is mostly the group's own time
  static constexpr std::chrono::duration<double> half_forgotten{1e-3};   // of groups that end together, none is alone

  Time last_end_{};
  double bytes_ = 0, seconds_ = 0;
};

}  // namespace laconic::nccl
