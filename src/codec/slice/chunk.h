// One chunk between its two forms: integers on the grid with exactly stored exceptions, and bytes. This is the
// definition of the stream: fast kernels must write the same bytes and read the same integers. Source of the layout:
// ours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/slice/expansion.h"
#include "codec/slice/layout.h"

namespace laconic::slice {

/// What a chunk's reader and writer must know of the frame around it.
struct ChunkShape {
  int element_bytes = 4;    ///< 2, 4 or 8
  bool floating = true;     ///< lossless blocks order-map the bits of floats
  bool exact_only = false;  ///< the lossless grid: integers are the elements, there are no marks
  bool sum = false;         ///< more than one operand: exceptions are expansions
};

/// How a chunk's residuals are formed.
template <class I>
struct Choice {
  Predictor predictor = Predictor::first;
  I base = 0;
};

/// Where a chunk's integers come from: that decides the predictor of a sum (see sum_choice).
enum class Origin { elements, coded, constant };

/// A chunk's values. I is int32_t or int64_t: the frame's integer; its arithmetic wraps.
template <class I>
struct Chunk {
  Origin origin = Origin::elements;
  Choice<I> choice;          ///< of a coded chunk; of a constant one just the base
  int count = chunk_values;  ///< values that exist; the rest repeat the last q and are never marked
  std::array<I, chunk_values> q;
  std::array<std::uint64_t, chunk_blocks> marks;  ///< bit i: the value is an exception; its q repeats the one before
  std::array<std::uint64_t, chunk_values> exact;  ///< operands with marks: bits of all elements, the last repeated
  std::vector<Expansion> terms;                   ///< sums: one for each marked value, in order

  [[nodiscard]] bool any_marks() const {
    for (const auto m : marks)
      if (m != 0) return true;
    return false;
  }
};

/// Most bytes of a chunk that is no sum.
constexpr std::size_t chunk_capacity(int element_bytes) {
  return 4 + static_cast<std::size_t>(chunk_values * element_bytes);
}

/// Element bits <-> integers in the order of the floats: negative ones have all bits below the sign inverted.
constexpr std::int64_t order_flip(std::int64_t s, int element_bytes) {
  return s < 0 ? s ^ static_cast<std::int64_t>((std::uint64_t{1} << (8 * element_bytes - 1)) - 1) : s;
}
template <class I>
constexpr I order_map(std::uint64_t element, int element_bytes) {
  const int unused = 64 - 8 * element_bytes;
  return static_cast<I>(order_flip(static_cast<std::int64_t>(element << unused) >> unused, element_bytes));
}
constexpr std::uint64_t order_unmap(std::int64_t ordered, int element_bytes) {
  const int unused = 64 - 8 * element_bytes;
  return (static_cast<std::uint64_t>(order_flip(ordered, element_bytes)) << unused) >> unused;
}

/// The predictor that the writer uses for these q (marks already held), and the base that goes with it.
template <class I>
Choice<I> choose_predictor(const I* q, bool allow_second);

/// The sampled mean that choose_predictor takes as the base of `none`.
template <class I>
I sampled_mean(const I* q);

/// Writes the chunk; `raw` are its elements (null for a sum), copied when coding would not be smaller. Some of q may be
/// replaced (values of blocks that are stored losslessly). `given` replaces choose_predictor(). Returns the bytes
/// written, a multiple of 4: at most chunk_capacity, for a sum at most sum_chunk_bound.
template <class I>
std::size_t write_chunk(Chunk<I>& c, const ChunkShape& shape, const std::uint8_t* raw, std::uint8_t* out,
                        const Choice<I>* given = nullptr);

/// What the writer would need for a sum in the worst case: planes of full width, and these terms.
template <class I>
std::size_t sum_chunk_bound(const Chunk<I>& c);

/// Reads `size` bytes into c (c.count is given). Returns false, with c unspecified, when they are no chunk of
/// version 1.
template <class I>
bool read_chunk(const std::uint8_t* in, std::size_t size, const ChunkShape& shape, Chunk<I>& c);

/// Makes marked values repeat the q before them (the first unmarked one at the start; 0 when there is none).
template <class I>
void hold_marked(Chunk<I>& c);

}  // namespace laconic::slice
