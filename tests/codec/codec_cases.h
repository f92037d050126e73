// What the tests of all codecs share: the codecs that are built in, grids to try, frames and what they hold.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "codec/slice_cases.h"

namespace laconic::test {

inline std::vector<const Codec*> built_codecs() {
  std::vector<const Codec*> found;
  for (const Codec* c : all_codecs())
    if (c->available()) found.push_back(c);
  return found;
}

/// Grids of grids_of(), or ratios.
inline std::vector<Grid> grids_for(const Codec& codec, DType t) {
  if (codec.promise() != Promise::rate) return grids_of(t);
  return {rate_grid(t, 1), rate_grid(t, 4), rate_grid(t, 10)};
}

inline Outcome encoded_by(const Codec& codec, const Array& x, const Grid& g, int threads = 1, Extents extents = {}) {
  return outcome_of(frame::capacity(x.dtype, x.count, codec),
                    [&](frame::MutBytes out) { return frame::encode(codec, x.view(), g, out, threads, extents); });
}

inline std::string describe(const Codec& codec, DType t, const Grid& g, Kind kind, std::size_t count) {
  return std::string(codec.name()) + ", " + describe(t, g, kind, count);
}

/// What a codec's promise says of y, which x became; empty where it is kept.
inline std::string broken_promise(const Codec& codec, const Grid& g, const Array& x, const Array& y) {
  const bool exact = codec.promise() == Promise::lossless || g.lossless();
  for (std::size_t i = 0; i < x.count; ++i) {
    const bool must_be_equal = exact || !std::isfinite(x.value(i));
    if (must_be_equal ? x.bits(i) == y.bits(i) : codec.promise() == Promise::rate) continue;
    const auto error = std::abs(static_cast<long double>(x.value(i)) - static_cast<long double>(y.value(i)));
    if (!must_be_equal && error <= static_cast<long double>(g.bound)) continue;
    return "element " + std::to_string(i) + ": " + std::to_string(x.value(i)) + " became " + std::to_string(y.value(i));
  }
  return {};
}

}  // namespace laconic::test
