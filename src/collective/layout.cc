#include "collective/layout.h"

#include <cstdint>
#include <functional>

#include "frame/frame.h"

namespace laconic {
namespace {

// Below this many chunks a block, whole chunks would make the shares too uneven.
constexpr std::size_t chunks_worth_keeping_whole = 8;

template <typename Array>
std::vector<Array> split_any(Array array, std::span<const std::size_t> counts, std::span<const std::size_t> displs) {
  std::vector<Array> parts;
  parts.reserve(counts.size());
  std::size_t first = 0;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    parts.push_back(slice_of(array, displs.empty() || counts[b] == 0 ? first : displs[b], counts[b]));
    first += counts[b];
  }
  return parts;
}

/// The bytes of an array that has any, and which of several it is.
struct Extent {
  const std::uint8_t* begin;
  const std::uint8_t* end;
  std::size_t number;
};

/// In order of their beginnings.
template <typename Array>
std::vector<Extent> extents_of(const std::vector<Array>& arrays) {
  const auto before = [](const Extent& a, const Extent& b) { return std::less<>()(a.begin, b.begin); };
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto* first = static_cast<const std::uint8_t*>(arrays[i].data);
    if (arrays[i].bytes() != 0) extents.push_back({first, first + arrays[i].bytes(), i});
  }
  if (!std::is_sorted(extents.begin(), extents.end(), before)) std::sort(extents.begin(), extents.end(), before);
  return extents;
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

ConstArray longest_of(const std::vector<ConstArray>& parts, ConstArray none) {
  const auto longest = std::max_element(parts.begin(), parts.end(),
                                        [](const ConstArray& a, const ConstArray& b) { return a.count < b.count; });
  return longest == parts.end() ? none : *longest;
}

bool overlap(const std::vector<ConstArray>& a, const std::vector<ConstArray>& b) {
  const auto in_a = extents_of(a);
  const auto in_b = extents_of(b);
  for (auto i = in_a.begin(), j = in_b.begin(); i != in_a.end() && j != in_b.end();) {
    if (!std::less<>()(i->begin, j->end)) {
      ++j;
    } else if (!std::less<>()(j->begin, i->end)) {
      ++i;
    } else {
      return true;
    }
  }
  return false;
}

std::optional<std::pair<std::size_t, std::size_t>> first_overlap(const std::vector<ConstArray>& among) {
  const auto extents = extents_of(among);
  for (std::size_t i = 1; i < extents.size(); ++i) {  // those before do not overlap, so each ends where the next begins
    if (std::less<>()(extents[i].begin, extents[i - 1].end)) return {{extents[i - 1].number, extents[i].number}};
  }
  return std::nullopt;
}

std::vector<ConstArray> split(ConstArray array, std::span<const std::size_t> counts,
                              std::span<const std::size_t> displs) {
  return split_any(array, counts, displs);
}

std::vector<MutArray> split(MutArray array, std::span<const std::size_t> counts, std::span<const std::size_t> displs) {
  return split_any(array, counts, displs);
}

}  // namespace laconic
