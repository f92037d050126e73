// Exceptions of sums whose operands mark the same positions with one value each, as those of an ensemble's members that
// have the same land: so does the sum, with the sum of the values. Source: ours; the definition is
// codec/slice/reference.cc.
#pragma once

#include "gpu/decode_chunk.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// The sum of the operands' fill values.
template <class T>
class FillSum {
 public:
  [[nodiscard]] LACONIC_GPU_FN bool any() const { return any_; }
  [[nodiscard]] LACONIC_GPU_FN std::uint64_t bits() const { return std::bit_cast<std::uint64_t>(sum_); }

  /// Adds an operand's. False: the sum is not one number, or the value is no exception.
  LACONIC_GPU_FN bool add(const Params& p, std::uint64_t stored) {
    double v = std::bit_cast<double>(stored);
    if (!p.shape.sum) {
      std::int64_t q = 0;
      const auto element = static_cast<typename T::Bits>(stored);
      if (Quantiser<T>(p)(element, q)) return false;  // it counts as its grid point
      v = static_cast<double>(T::real(element));
    }
    if (!any_) {
      any_ = true;
      sum_ = v;
      return true;
    }
    const double s = sum_ + v;
    if (Terms::finite(s) && Terms::rest_of(sum_, v, s) != 0) return false;
    sum_ = s != s ? std::bit_cast<double>(Terms::nan) : s == 0 ? 0 : s;
    return true;
  }

 private:
  bool any_ = false;
  double sum_ = 0;
};

/// What a sum in planes does about exceptions: there must be none.
template <class T>
struct NoMarks {
  static constexpr bool marked = false;
  static constexpr FastRead refused = FastRead::filled;

  LACONIC_GPU_FN bool quantise(const Warp& w, const Params& p, const typename T::Bits* x,
                               const Rows<std::int32_t>& rows) const {
    return quantise_chunk<T>(w, p, x, chunk_values, rows);
  }
  LACONIC_GPU_FN bool admits(const Word& word) const {
    return word.kind != Kind::fill && (word.kind != Kind::coded || !word.has_fill);
  }
  LACONIC_GPU_FN bool take(const Warp&, const Params&, bool, std::uint64_t, const PerLane<std::uint64_t>&) const {
    return true;
  }
};

/// Or the same ones in all operands, but in whole chunks not everywhere.
template <class T>
class CommonMarks {
 public:
  static constexpr bool marked = true;
  static constexpr FastRead refused = FastRead::rare;

  [[nodiscard]] LACONIC_GPU_FN bool any() const { return sum_.any(); }

  /// Elements -> integers, held. False: what take() says, or they have several values.
  LACONIC_GPU_FN bool quantise(const Warp& w, const Params& p, const typename T::Bits* x,
                               const Rows<std::int32_t>& rows) {
    const Exceptions<T> found = quantise_others<T>(w, p, x, chunk_values, rows);
    if (!found.single || !take(w, p, true, found.value, found.marks)) return false;
    hold(w, rows, marks_, chunk_values);
    return true;
  }
  LACONIC_GPU_FN bool admits(const Word& word) const { return word.kind != Kind::fill; }
  /// The next operand's. False: they are not the same, everywhere or nowhere, or have no sum that is one number.
  LACONIC_GPU_FN bool take(const Warp& w, const Params& p, bool has_fill, std::uint64_t fill,
                           const PerLane<std::uint64_t>& marks) {
    if (!begun_) {
      begun_ = true;
      marks_ = marks;
      const bool some = w.any([&](int l) { return marks[l] != 0; });
      const bool all = !w.any([&](int l) { return ~marks[l] != 0; });
      return has_fill ? some && !all && sum_.add(p, fill) : true;
    }
    if (w.any([&](int l) { return marks[l] != marks_[l]; })) return false;
    return has_fill == any() && (!has_fill || sum_.add(p, fill));
  }
  LACONIC_GPU_FN void hold_in(const Warp& w, const Rows<std::int32_t>& rows) const {
    if (any()) hold(w, rows, marks_, chunk_values);
  }
  [[nodiscard]] LACONIC_GPU_FN const PerLane<std::uint64_t>& marks() const { return marks_; }
  [[nodiscard]] LACONIC_GPU_FN Fill fill(const Warp& w) const {
    return any() ? fill_of(w, marks_, sum_.bits()) : Fill{};
  }

 private:
  FillSum<T> sum_;
  bool begun_ = false;
  PerLane<std::uint64_t> marks_;
};

/// Rows that have a sum, held -> bytes in the region that they lie in. Not inlined, as it is large and has few callers
/// that matter.
template <class T>
LACONIC_GPU_RARE Made write_sum_of_rows(const Warp& w, Choice<std::int32_t> choice, bool given,
                                        const CommonMarks<T>& common, const ChunkShape& shape, std::uint8_t* region) {
  const Rows<std::int32_t> rows(region);
  const Fill fill = common.fill(w);
  const Made made = write_rows(w, rows, given ? &choice : nullptr, fill, shape, region_bytes<std::int32_t>, region);
  return made.as == Made::As::bytes ? made : Made{};
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
