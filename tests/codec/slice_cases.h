// What the slice codec's tests share: grids to try for a dtype, and calls with outcomes that can be compared.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/grid.h"
#include "codec/slice/target.h"
#include "core/error.h"
#include "frame/frame.h"
#include "support/sample_data.h"

namespace laconic::test {

/// Grids of a dtype: lossless, tight (many values leave the grid's integers) and loose, with and without known
/// magnitude.
inline std::vector<Grid> grids_of(DType t) {
  const double unknown = std::numeric_limits<double>::infinity();
  std::vector<Grid> g = {make_grid(t, 0, unknown)};
  if (!is_float(t)) return g;
  const bool half = t == DType::f16 || t == DType::bf16;
  g.push_back(make_grid(t, half ? 1e-3 : t == DType::f64 ? 1e-12 : 1e-6, 1.3));
  g.push_back(make_grid(t, half ? 2e-2 : 1e-2, unknown));
  if (t == DType::f64) g.push_back(make_grid(t, 1e-5, 1.3));
  return g;
}

/// Far beyond a grid of numbers up to 1, everywhere.
inline Array all_fill(DType t, std::size_t count) {
  Array x(t, count);
  for (std::size_t i = 0; i < count; ++i) x.set_value(i, 60000);
  return x;
}
/// From -1 to 1, whose best predictor is none.
inline Array white_noise(DType t, std::size_t count) {
  Array x(t, count);
  unsigned state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    x.set_value(i, static_cast<double>(state >> 24) / 128 - 1);
  }
  return x;
}

inline std::vector<slice::Target> fast_targets() {
  std::vector<slice::Target> found;
  for (const auto t : {slice::Target::portable, slice::Target::avx2, slice::Target::avx512, slice::Target::avx512x})
    if (slice::supported(t)) found.push_back(t);
  return found;
}

/// Runs on another target for as long as it lives.
class OnTarget {
 public:
  explicit OnTarget(slice::Target t) : before_(slice::current()) { slice::force(t); }
  ~OnTarget() { slice::force(before_); }
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;

 private:
  slice::Target before_;
};

/// A frame, or the code of the error instead of it.
struct Outcome {
  Code code = Code::ok;
  std::vector<std::uint8_t> frame;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

template <class F>
Outcome outcome_of(std::size_t capacity, F write) {
  Outcome o;
  o.frame.resize(capacity);
  try {
    o.frame.resize(write(frame::MutBytes(o.frame)));
  } catch (const Error& e) {
    o.code = e.code();
    o.frame.clear();
  }
  return o;
}

inline Outcome encoded(const Array& x, const Grid& g, int threads = 1) {
  return outcome_of(frame::capacity(x.dtype, x.count),
                    [&](frame::MutBytes out) { return frame::encode(x.view(), g, out, threads); });
}
inline Outcome added(const Array& like, const Outcome& a, const Outcome& b, int threads = 1) {
  return outcome_of(frame::sum_capacity(like.dtype, like.count),
                    [&](frame::MutBytes out) { return frame::add(a.frame, b.frame, out, threads); });
}
inline Outcome encode_added(const Array& x, const Outcome& b, int threads = 1) {
  return outcome_of(frame::sum_capacity(x.dtype, x.count),
                    [&](frame::MutBytes out) { return frame::encode_add(x.view(), b.frame, out, threads); });
}
/// x (null: none) and the frames, in one pass.
inline Outcome summed(const Array* x, const Array& like, const std::vector<Outcome>& frames, int threads = 1) {
  std::vector<frame::Bytes> terms;
  for (const Outcome& f : frames) terms.emplace_back(f.frame);
  return outcome_of(frame::sum_capacity(like.dtype, like.count), [&](frame::MutBytes out) {
    return frame::sum(x != nullptr ? std::optional(x->view()) : std::nullopt, terms, out, threads);
  });
}
/// The same, one after another.
inline Outcome summed_in_turn(const Array* x, const Array& like, const std::vector<Outcome>& frames) {
  Outcome sum = x != nullptr ? encode_added(*x, frames[0]) : frames[0];
  for (std::size_t i = 1; i < frames.size() && sum.code == Code::ok; ++i) sum = added(like, sum, frames[i]);
  return sum;
}
/// The least or the greatest of x (null: none) and the frames.
inline Outcome extreme_of(Op op, const Grid& g, const Array* x, const std::vector<Outcome>& frames, int threads = 1) {
  std::vector<frame::Bytes> terms;
  for (const Outcome& f : frames) terms.emplace_back(f.frame);
  const std::size_t count = x != nullptr ? x->count : frame::peek(frames[0].frame).count;
  return outcome_of(frame::capacity(g.dtype, count), [&](frame::MutBytes out) {
    return frame::extreme(op, g, x != nullptr ? std::optional(x->view()) : std::nullopt, terms, out, threads);
  });
}
inline Array decoded(const Array& like, const Outcome& f, int threads = 1, std::uint32_t divisor = 1,
                     std::size_t offset = 0) {
  Array y(like.dtype, like.count, offset);
  frame::decode(f.frame, y.view(), threads, divisor);
  return y;
}

/// A frame and what is read of it at once, into the array itself or another.
inline std::pair<Outcome, Array> encode_decoded(const Array& x, const Grid& g, bool in_place, int threads = 1) {
  Array from = x;
  Array y(x.dtype, x.count);
  Array& to = in_place ? from : y;
  const Outcome o = outcome_of(frame::capacity(x.dtype, x.count), [&](frame::MutBytes out) {
    return frame::encode_decode(slice_codec(), from.view(), g, out, to.view(), threads);
  });
  return {o, to};
}

inline std::string describe(DType t, const Grid& g, Kind kind, std::size_t count) {
  return std::string(laconic::name_of(t)) + ", bound " + std::to_string(g.bound) + " qbits " + std::to_string(g.qbits) +
         ", " + std::string(name_of(kind)) + ", " + std::to_string(count) + " elements";
}

}  // namespace laconic::test
