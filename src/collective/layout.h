// How a collective's data is cut: blocks (what a schedule moves), each in segments (what a pipeline moves).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/array.h"
#include "frame/frame.h"

namespace laconic {

/// Elements [first, first + count) of a block.
struct Part {
  int block = 0;
  std::size_t first = 0;
  std::size_t count = 0;
};

class Layout {
 public:
  /// counts: elements of each block. segment_values > 0: elements of a segment, the last of a block may be shorter.
  Layout(std::vector<std::size_t> counts, std::size_t segment_values)
      : counts_(std::move(counts)), segment_values_(segment_values) {}

  [[nodiscard]] std::size_t blocks() const { return counts_.size(); }
  [[nodiscard]] std::size_t count(int block) const { return counts_[static_cast<std::size_t>(block)]; }
  [[nodiscard]] std::size_t total() const { return std::accumulate(counts_.begin(), counts_.end(), std::size_t{0}); }
  [[nodiscard]] std::size_t segment_values() const { return segment_values_; }
  /// No segments in an empty block: nothing is sent for it.
  [[nodiscard]] std::size_t segments(int block) const { return (count(block) + segment_values_ - 1) / segment_values_; }
  [[nodiscard]] Part part(int block, std::size_t segment) const {
    const std::size_t first = segment * segment_values_;
    return {block, first, std::min(segment_values_, count(block) - first)};
  }

 private:
  std::vector<std::size_t> counts_;
  std::size_t segment_values_;
};

/// `values` rounded up to whole chunks, at least one. What no array can have is as good as its largest.
constexpr std::size_t whole_chunks(std::size_t values) {
  const std::size_t chunks = (std::min(values, std::size_t{1} << 60) + frame::chunk_values - 1) / frame::chunk_values;
  return std::max<std::size_t>(chunks, 1) * frame::chunk_values;
}

/// Cuts `count` elements into `blocks` shares that differ as little as whole chunks allow (single elements where there
/// are too few chunks for that).
std::vector<std::size_t> even_shares(std::size_t count, int blocks);

/// The elements of `array` from `first` on, `count` of them.
ConstArray slice_of(ConstArray array, std::size_t first, std::size_t count);
MutArray slice_of(MutArray array, std::size_t first, std::size_t count);

/// The one with most elements; `none` where there is no part.
ConstArray longest_of(const std::vector<ConstArray>& parts, ConstArray none);

/// True when they share memory. An array without elements shares none, wherever it lies.
inline bool overlap(const ConstArray& a, const ConstArray& b) {
  if (a.count == 0 || b.count == 0) return false;
  const auto* pa = static_cast<const std::uint8_t*>(a.data);
  const auto* pb = static_cast<const std::uint8_t*>(b.data);
  return std::less<>()(pa, pb + b.bytes()) && std::less<>()(pb, pa + a.bytes());
}

/// Whether any of a shares memory with any of b. n log n.
bool overlap(const std::vector<ConstArray>& a, const std::vector<ConstArray>& b);

/// Two of them that share memory, by number, if there are any. n log n; n where they lie in ascending order.
std::optional<std::pair<std::size_t, std::size_t>> first_overlap(const std::vector<ConstArray>& among);

/// One view per block: where displs has it in `array` or, without displs, one after the other, where their counts add
/// up to array.count.
std::vector<ConstArray> split(ConstArray array, std::span<const std::size_t> counts,
                              std::span<const std::size_t> displs = {});
std::vector<MutArray> split(MutArray array, std::span<const std::size_t> counts,
                            std::span<const std::size_t> displs = {});

}  // namespace laconic
