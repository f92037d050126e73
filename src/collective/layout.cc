#include "collective/layout.h"

#include <cstdint>
#include <functional>

#include "frame/frame.h"

namespace laconic {
namespace {

// Below this many chunks a block, whole chunks would make the shares too uneven.
constexpr std::size_t chunks_worth_keeping_whole = 8;

template <typename Array>
std::vector<Array> split_any(Array array, const std::vector<std::size_t>& counts) {
  std::vector<Array> parts;
  parts.reserve(counts.size());
  std::size_t first = 0;
  for (const std::size_t count : counts) {
    parts.push_back(slice_of(array, first, count));
    first += count;
  }
  return parts;
}

}  // namespace

std::vector<std::size_t> even_shares(std::size_t count, int blocks) {
  const auto n = static_cast<std::size_t>(blocks);
  const bool whole = count / frame::chunk_values >= n * chunks_worth_keeping_whole;
  const std::size_t unit = whole ? frame::chunk_values : 1;
  const std::size_t units = (count + unit - 1) / unit;
  std::vector<std::size_t> shares(n);
  std::size_t left = count;
  for (std::size_t b = 0; b < n; ++b) {
    const std::size_t share = (units / n + (b < units % n ? 1 : 0)) * unit;
    shares[b] = std::min(share, left);
    left -= shares[b];
  }
  return shares;
}

ConstArray slice_of(ConstArray array, std::size_t first, std::size_t count) {
  if (array.data == nullptr) return {nullptr, count, array.dtype};
  return {static_cast<const std::uint8_t*>(array.data) + first * size_of(array.dtype), count, array.dtype};
}

MutArray slice_of(MutArray array, std::size_t first, std::size_t count) {
  if (array.data == nullptr) return {nullptr, count, array.dtype};
  return {static_cast<std::uint8_t*>(array.data) + first * size_of(array.dtype), count, array.dtype};
}

bool overlap(ConstArray a, ConstArray b) {
  const auto* pa = static_cast<const std::uint8_t*>(a.data);
  const auto* pb = static_cast<const std::uint8_t*>(b.data);
  return std::less<>()(pa, pb + b.bytes()) && std::less<>()(pb, pa + a.bytes());
}

std::vector<ConstArray> split(ConstArray array, const std::vector<std::size_t>& counts) {
  return split_any(array, counts);
}

std::vector<MutArray> split(MutArray array, const std::vector<std::size_t>& counts) { return split_any(array, counts); }

}  // namespace laconic
