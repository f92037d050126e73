// One chunk of an array -> bytes, by one warp: the fast way, and the way that can do everything. Source: ours.
#pragma once

#include "gpu/fast_write.h"
#include "gpu/held.h"
#include "gpu/made.h"
#include "gpu/rare_write.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Shared memory of a warp: rows, or a chunk's bytes in their place; and behind the rows what an operand of a sum takes
/// mostly, as much as three thread blocks of an H100 have room for.
template <class R>
inline constexpr std::uint32_t region_bytes = Rows<R>::bytes + (sizeof(R) == 4 ? 1392 : 256);

/// What write_planes() writes at most: word, base, fill, codes, and 16 planes and marks, all sparse without a zero
/// byte.
inline constexpr std::uint32_t longest_of_planes = 4 + 4 + 12 + chunk_blocks * (1 + 9 * (PlaneStore::most + 1)) + 3;
static_assert(longest_of_planes <= region_bytes<std::int32_t> - PlaneStore::bytes - PlaneStore::mask_bytes);

/// Where a region has planes, in place of the rows' second half: behind any chunk of as many planes, and their masks.
LACONIC_GPU_FN std::uint8_t* planes_in_region(std::uint8_t* region) {
  return region + region_bytes<std::int32_t> - PlaneStore::bytes;
}

/// Rows of integers, held -> bytes in the region that the rows lie in, with the predictor `given` or one that is
/// chosen. bias: what rows are too large by.
LACONIC_GPU_FN Made write_rows(const Warp& w, const Rows<std::int32_t>& rows, const Choice<std::int32_t>* given,
                               const Fill& fill, const ChunkShape& shape, std::uint32_t longest, std::uint8_t* region,
                               std::int32_t bias = 0) {
  std::uint32_t cost = 0;
  const Choice<std::int32_t> choice =
      given != nullptr ? *given : choose_predictor<std::int32_t>(w, rows, true, cost, bias);
  const bool chained = choice.predictor != Predictor::none;
  if (choice.predictor == Predictor::second) slopes_in_place(w, rows);
  PlaneStore planes(planes_in_region(region));
  const auto fits = [&](auto in_registers) {
    if (!planes_of_rows(w, rows, chained, wrap_add(choice.base, bias), in_registers)) return false;
    planes.put(w, in_registers);
    return true;
  };
  // A sampled residual may need more than 8 planes.
  if ((cost > 8 * 16 || !fits(PerLane<Planes<1>>{})) && !fits(PerLane<Planes<2>>{})) return {Made::As::again, 0};
  const std::uint32_t n = write_planes(w, planes, choice, fill, shape, longest, region);
  return n != 0 ? Made{Made::As::bytes, n} : Made{Made::As::raw, 0};
}

/// A chunk with one value for all exceptions; apart, so that others are not written with registers for these.
template <class T>
LACONIC_GPU_RARE Made encode_filled(const Warp& w, const Params& p, const typename T::Bits* x, int count,
                                    std::uint32_t longest, std::uint8_t* region) {
  const Rows<std::int32_t> rows(region);
  const Exceptions<T> found = quantise_others<T>(w, p, x, count, rows);
  if (!found.single) return {};
  if (found.all(w, count)) return {Made::As::bytes, write_fill_chunk(w, found.value, p.shape, region)};
  const Fill fill = fill_of(w, found.marks, found.value);
  hold(w, rows, fill.marks, count);
  return write_rows(w, rows, nullptr, fill, p.shape, longest, region);
}

/// The fast way: integers of 32 bits, at most one value for all exceptions, residuals of at most 16 bits.
template <class T>
LACONIC_GPU_FN Made encode_fast(const Warp& w, const Params& p, const typename T::Bits* x, int count,
                                std::uint8_t* region) {
  const Rows<std::int32_t> rows(region);
  const auto longest = 4 + pad4(static_cast<std::uint32_t>(count) * sizeof(typename T::Bits));
  std::int32_t bias = 0;
  if (!quantise_chunk<T>(w, p, x, count, rows, &bias)) return encode_filled<T>(w, p, x, count, longest, region);
  const PerLane<std::uint64_t> no_marks{};
  if (count < chunk_values) hold(w, rows, no_marks, count);
  const Fill no_fill{};
  return write_rows(w, rows, nullptr, no_fill, p.shape, longest, region, bias);
}

/// Any chunk, straight to `out`, or only its size if that is null. Gives store_raw where raw is not longer.
template <class T, class R>
LACONIC_GPU_RARE std::uint32_t encode_any(const Warp& w, const Params& p, const typename T::Bits* x, int count,
                                          std::uint8_t* region, std::uint8_t* out) {
  const Rows<R> rows(region);
  PerLane<std::uint64_t> marks;
  if (p.shape.exact_only) {
    order_chunk<T>(w, x, count, rows);
  } else if (!quantise_chunk<T>(w, p, x, count, rows)) {
    marks = quantise_others<T>(w, p, x, count, rows).marks;
  }
  hold(w, rows, marks, count);
  ElementsExact<T> exact{x};
  return write_any_chunk<T, R>(w, rows, marks, count, p.shape, exact, nullptr, out);
}

/// First half of encoding: the chunk's size, and its bytes in the region where they fit there.
template <class T, class R>
LACONIC_GPU_FN Made make_encoded(const Warp& w, const Params& p, const typename T::Bits* x, int count,
                                 std::uint8_t* region) {
  Made made{Made::As::again, 0};
  if constexpr (sizeof(R) == 4) {
    if (!p.shape.exact_only) made = encode_fast<T>(w, p, x, count, region);
  }
  if (made.as == Made::As::again) {
    made.bytes = encode_any<T, R>(w, p, x, count, region, nullptr);
    if (made.bytes == store_raw) made.as = Made::As::raw;
  }
  if (made.as == Made::As::raw) made.bytes = pad4(4 + static_cast<std::uint32_t>(count) * sizeof(typename T::Bits));
  return made;
}

/// Second half, of a chunk that is not there as bytes: puts it where it belongs.
template <class T, class R>
LACONIC_GPU_FN void place_encoded(const Warp& w, const Params& p, const typename T::Bits* x, int count,
                                  std::uint8_t* region, const Made& made, std::uint8_t* out) {
  if (made.as == Made::As::raw) {
    write_raw_chunk<T>(w, x, count, out);
    return;
  }
  encode_any<T, R>(w, p, x, count, region, out);
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
