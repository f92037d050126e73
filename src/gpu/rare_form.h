// What a chunk with exceptions is before its planes are made: its fill value, which blocks are fill blocks and which
// lossless, and whether it has planes at all. Source: ours; the definition is write_chunk() in
// codec/slice/chunk_writer.cc.
#pragma once

#include "gpu/held.h"
#include "gpu/sections.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

using slice::Extra;

// An `Exact` is what the writer asks for the values of exceptions:
//   static constexpr bool sum                       whether they are sums of terms
//   bool key(int lane, int i, std::uint64_t& k)     one that fits a fill value; its bits
//   std::uint64_t element(int lane, int i)          operands: the element's bits
//   int terms(int lane, int i)                      sums: how many terms
//   double term(int lane, int j)                    and the j-th of those last counted
//   bool failed(int lane)                           more terms than there may be were met

/// The exceptions of an array's chunk.
template <class T>
struct ElementsExact {
  static constexpr bool sum = false;
  const typename T::Bits* x;

  LACONIC_GPU_FN bool key(int l, int i, std::uint64_t& k) const {
    k = element(l, i);
    return true;
  }
  [[nodiscard]] LACONIC_GPU_FN std::uint64_t element(int l, int i) const { return x[block_values * l + i]; }
  [[nodiscard]] LACONIC_GPU_FN bool failed(int) const { return false; }
};

/// A block on its way to the chunk.
struct BlockOut {
  std::uint32_t width = 0;
  std::uint32_t dense = 0;
  std::uint32_t sparse_bytes = 0;  ///< non-zero bytes of all sparse planes, marks included
  std::uint32_t exact_bytes = 0;
  Extra extra = Extra::wide;
  bool marked = false;
  bool lossless = false;  ///< or raw

  [[nodiscard]] LACONIC_GPU_FN std::uint32_t sparse() const { return width - dense + (marked ? 1 : 0); }
  [[nodiscard]] LACONIC_GPU_FN bool extended() const {
    return extra != Extra::wide || width > static_cast<std::uint32_t>(slice::max_code_width);
  }
};

/// The exceptions of a lane's block, seen from the neighbours.
struct KeysOfBlock {
  std::uint64_t first = 0, last = 0, repeated = 0;
  bool starts_with_key = false;  ///< the first exception has one
  bool ends_with_key = false;
  bool has_key = false;
  std::uint64_t first_key = 0;
  bool repeats = false;
};

template <class Exact>
LACONIC_GPU_FN KeysOfBlock keys_of_block(Exact& exact, int l, std::uint64_t marks) {
  KeysOfBlock k;
  bool any = false;
  for (std::uint64_t m = marks; m != 0; m &= m - 1) {
    std::uint64_t v = 0;
    const bool has = exact.key(l, trailing_zeros(m), v);
    if (!any) {
      k.starts_with_key = has;
      k.first = v;
    }
    if (any && has && k.ends_with_key && v == k.last && !k.repeats) {
      k.repeats = true;
      k.repeated = v;
    }
    if (has && !k.has_key) {
      k.has_key = true;
      k.first_key = v;
    }
    any = true;
    k.ends_with_key = has;
    k.last = v;
  }
  return k;
}

/// The fill value: the first that the exception before it has too, else the first. False without any.
template <class Exact>
LACONIC_GPU_FN bool find_fill(const Warp& w, Exact& exact, const PerLane<std::uint64_t>& marks, std::uint64_t& fill) {
  PerLane<KeysOfBlock> keys;
  w.each([&](int l) { keys[l] = keys_of_block(exact, l, marks[l]); });
  const std::uint32_t lanes = w.ballot([&](int l) { return marks[l] != 0; });
  const std::uint32_t ends_with_key = w.ballot([&](int l) { return keys[l].ends_with_key; });
  PerLane<std::uint64_t> last;
  PerLane<std::uint64_t> first_key;
  PerLane<std::uint64_t> repeated;
  w.each([&](int l) {
    last[l] = keys[l].last;
    first_key[l] = keys[l].first_key;
  });
  const PerLane<std::uint64_t> before = w.gather(last, [&](int l) {
    const int source = last_below(lanes, l);
    return source < 0 ? l : source;
  });
  const std::uint32_t repeats = w.ballot([&](int l) {
    const KeysOfBlock& k = keys[l];
    const int source = last_below(lanes, l);
    const bool at_once = source >= 0 && (ends_with_key >> source & 1) != 0 && k.starts_with_key && k.first == before[l];
    repeated[l] = at_once ? k.first : k.repeated;
    return at_once || k.repeats;
  });
  const std::uint32_t with_key = w.ballot([&](int l) { return keys[l].has_key; });
  if (with_key == 0) return false;
  fill = repeats != 0 ? w.from(repeated, trailing_zeros(repeats)) : w.from(first_key, trailing_zeros(with_key));
  return true;
}

template <class Exact>
LACONIC_GPU_FN bool all_have_key(Exact& exact, int l, std::uint64_t marks, std::uint64_t key) {
  bool equal = true;
  for (std::uint64_t m = marks; m != 0; m &= m - 1) {
    std::uint64_t v = 0;
    equal = equal && exact.key(l, trailing_zeros(m), v) && v == key;
  }
  return equal;
}

template <class R>
LACONIC_GPU_FN bool all_equal(const Warp& w, const Rows<R>& rows) {
  const R q0 = rows[0];
  return !w.any([&](int l) {
    bool differ = false;
    for (int i = 0; i < block_values; ++i) differ = differ || rows.at(l, i) != q0;
    return differ;
  });
}

/// Everything that is known of a chunk before its planes are made.
template <class R>
struct Form {
  Kind kind = Kind::coded;
  Start start;
  bool any_lossless = false;
};

/// Finds fill value, fill blocks, lossless blocks, and whether the chunk is of a kind without planes.
template <class R, class Exact>
LACONIC_GPU_FN Form<R> form_of(const Warp& w, const Rows<R>& rows, const PerLane<std::uint64_t>& marks, int count,
                               Exact& exact, PerLane<BlockOut>& blocks) {
  Form<R> f;
  const std::uint32_t marked = w.ballot([&](int l) { return marks[l] != 0; });
  if (marked == 0) {
    if (all_equal(w, rows)) f.kind = Kind::constant;
    return f;
  }
  const bool has_fill = find_fill(w, exact, marks, f.start.fill);
  f.start.fill_blocks =
      has_fill ? w.ballot([&](int l) { return marks[l] != 0 && all_have_key(exact, l, marks[l], f.start.fill); }) : 0;
  f.start.word.has_fill = f.start.fill_blocks != 0;
  const bool all_marked = !w.any([&](int l) { return marks[l] != elements_of_block(count, l); });
  if (has_fill && all_marked && f.start.fill_blocks == marked) f.kind = Kind::fill;
  if constexpr (!Exact::sum) {
    f.any_lossless = w.any([&](int l) {
      blocks[l].lossless = (f.start.fill_blocks >> l & 1) == 0 && count_ones(marks[l]) > slice::max_listed;
      return blocks[l].lossless;
    });
  }
  return f;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
