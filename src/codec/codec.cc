#include "codec/codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "codec/registry.h"
#include "core/error.h"

namespace laconic {
namespace {

std::string quoted(std::string_view s) { return "'" + std::string(s) + "'"; }

template <class Want>
std::string names_of(Want want) {
  std::string names;
  for (const Codec* c : all_codecs())
    if (want(*c)) names += (names.empty() ? "" : ", ") + std::string(c->name());
  return names;
}

std::string as_ratio(double ratio) { return Bound{.kind = BoundKind::ratio, .value = ratio}.to_string(); }

/// To one of the rates that the codec has.
Grid rounded_down(const Codec& codec, Grid grid, Extents extents) {
  const Rates rates = codec.rates(grid.dtype, extents);
  if (rates.unit == 0) return grid;  // not built in: what would use it says so
  if (grid.step < rates.least) {
    const double bits = 8 * static_cast<double>(size_of(grid.dtype));
    const double most = std::floor(10 * bits / rates.least) / 10;
    throw Error(Code::unsupported, "bound: a ratio of " + as_ratio(bits / grid.step) + " is more than " +
                                       std::string(codec.name()) + " has for " + std::string(name_of(grid.dtype)) +
                                       (extents.fast == 0 ? ", where no extents are known" : " of such extents") +
                                       "; ask for at most " + as_ratio(most));
  }
  grid.step = std::floor(grid.step / rates.unit) * rates.unit;
  grid.qbits = 0;  // nothing is beyond these
  return grid;
}

}  // namespace

std::span<const Codec* const> all_codecs() {
  static const std::array<const Codec*, 8> all = {&slice_codec(),    &szx_codec(), &fzlight_codec(), &zfp_codec(),
                                                  &zfp_rate_codec(), &lz4_codec(), &lz4hc_codec(),   &zstd_codec()};
  return all;
}

const Codec* find_codec(CodecId id) {
  const std::size_t place = static_cast<std::size_t>(id) - 1;  // they are in order, from 1 on
  return place < all_codecs().size() ? all_codecs()[place] : nullptr;
}

const Codec& find_codec(std::string_view name) {
  for (const Codec* c : all_codecs())
    if (c->name() == name) return *c;
  throw Error(Code::invalid_argument,
              "codec: " + quoted(name) + " is unknown; there are " + names_of([](const Codec&) { return true; }));
}

void require_dtype(const Codec& codec, DType dtype) {
  if (codec.takes(dtype)) return;
  throw Error(Code::unsupported,
              "codec: " + std::string(codec.name()) + " does not code " + std::string(name_of(dtype)) +
                  "; these do: " + names_of([&](const Codec& c) { return c.available() && c.takes(dtype); }));
}

Grid grid_for(const Codec& codec, const Grid& grid, Extents extents) {
  const bool rate = std::isinf(grid.bound);
  if (rate && codec.promise() == Promise::lossless)
    throw Error(Code::unsupported, "bound: " + std::string(codec.name()) +
                                       " loses nothing and keeps no ratio; these do: " +
                                       names_of([](const Codec& c) { return c.promise() != Promise::lossless; }));
  if (!rate && codec.promise() == Promise::rate)
    throw Error(Code::unsupported,
                "bound: " + std::string(codec.name()) + " has a ratio, as 10x, and promises no error bound");
  if (codec.promise() == Promise::rate) return rounded_down(codec, grid, extents);
  return codec.promise() == Promise::lossless ? Grid{.dtype = grid.dtype} : grid;
}

Grid rate_grid(DType dtype, double ratio, BeyondRatio beyond) {
  const double bits = 8 * static_cast<double>(size_of(dtype));
  if (!(ratio >= 1 && ratio <= bits))
    throw Error(Code::invalid_argument, "bound: a ratio of " + as_ratio(ratio) + " for " + std::string(name_of(dtype)) +
                                            " is not between 1 and " + std::to_string(static_cast<int>(bits)));
  return {.dtype = dtype,
          .step = bits / ratio,
          .bound = std::numeric_limits<double>::infinity(),
          .qbits = beyond == BeyondRatio::refused ? 0 : 1};
}

Grid grid_for(const Codec& codec, DType dtype, const Bound& bound, const Range& range, Extents extents) {
  require_dtype(codec, dtype);
  if (bound.is_ratio_of(dtype)) return grid_for(codec, rate_grid(dtype, bound.value), extents);
  if (codec.promise() == Promise::rate) return grid_for(codec, Grid{.dtype = dtype});  // says why not
  if (codec.promise() == Promise::lossless || !is_float(dtype) || bound.kind == BoundKind::lossless)
    return Grid{.dtype = dtype};
  return make_grid(dtype, bound.absolute_for(range.width()), range.max_abs());
}

}  // namespace laconic
