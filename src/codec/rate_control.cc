#include "codec/rate_control.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/range.h"

namespace laconic {
namespace {

constexpr std::size_t chunk = 2048;        // codecs whose chunks stand alone encode a sample's as the array's
constexpr std::size_t sample_chunks = 64;  // beyond twice as many a sample is taken
constexpr double resolution = 1.0 / 16;    // of a bound's logarithm: some hundredths of the bytes at usual ratios
constexpr double close_enough = 1 - 1.0 / 32;
constexpr int most_steps = 12;

/// Whole chunks, spread evenly, one behind the other.
std::vector<std::uint8_t> sample_of(ConstArray x) {
  const std::size_t width = size_of(x.dtype), chunks = x.count / chunk;
  std::vector<std::uint8_t> out(sample_chunks * chunk * width);
  const auto* from = static_cast<const std::uint8_t*>(x.data);
  for (std::size_t i = 0; i < sample_chunks; ++i)
    std::memcpy(out.data() + i * chunk * width, from + i * chunks / sample_chunks * chunk * width, chunk * width);
  return out;
}

/// What an array takes within bounds whose base-2 logarithm is given.
class Sizes {
 public:
  Sizes(const Codec& codec, ConstArray x, Extents extents, double max_abs, int threads)
      : codec_(codec), x_(x), extents_(extents), max_abs_(max_abs), threads_(threads) {
    capacity_ = codec.capacity(x.dtype, x.count);
    room_.reset(new std::uint8_t[capacity_]);
  }

  [[nodiscard]] Grid grid(double log_bound) const { return make_grid(x_.dtype, std::exp2(log_bound), max_abs_); }
  [[nodiscard]] double on(const Grid& grid) const {
    return static_cast<double>(codec_.encode(x_, grid, extents_, {room_.get(), capacity_}, threads_, nullptr));
  }
  [[nodiscard]] double within(double log_bound) const { return on(grid(log_bound)); }
  /// Bytes that twice the bound saves at most: a bit of each element.
  [[nodiscard]] double of_a_bit() const { return static_cast<double>(x_.count) / 8; }

 private:
  const Codec& codec_;
  ConstArray x_;
  Extents extents_;
  double max_abs_;
  int threads_;
  std::size_t capacity_ = 0;
  std::unique_ptr<std::uint8_t[]> room_;
};

/// Logarithms of bounds: of one within which too much is left, and of one that is coarse enough, as far as is known.
struct Bracket {
  double fine, coarse;
};

/// Of make_grid().
Bracket all_steps(DType dtype) { return dtype == DType::f64 ? Bracket{-900, 900} : Bracket{-110, 120}; }

/// Of all that tells bounds apart: from the smallest step to where 0 is left, of zfp too, which keeps some bits more.
Bracket all_bounds(DType dtype, const Range& range) {
  const Bracket steps = all_steps(dtype);
  return {steps.fine, std::clamp(std::log2(range.max_abs()) + 9, steps.fine + 1, steps.coarse)};
}

/// The finest that is enough; nothing where the coarsest is not. By ever longer strides from there, since encoding is
/// slowest within bounds that hardly any value keeps.
std::optional<double> bisected(const Sizes& sizes, double most_bytes, Bracket b) {
  if (sizes.within(b.coarse) > most_bytes) return std::nullopt;
  double stride = 2;
  while (b.coarse - stride > b.fine) {
    const double at = b.coarse - stride;
    (sizes.within(at) <= most_bytes ? b.coarse : b.fine) = at;
    stride *= 2;
  }
  while (b.coarse - b.fine > resolution) {
    const double middle = (b.fine + b.coarse) / 2;
    (sizes.within(middle) <= most_bytes ? b.coarse : b.fine) = middle;
  }
  return b.coarse;
}

/// The same from `start`, which a sample suggests: by secants to the middle of what is close enough.
std::optional<double> refined(const Sizes& sizes, double most_bytes, Bracket b, double start) {
  const double aim = most_bytes * (1 + close_enough) / 2;
  std::optional<double> enough;
  double at = std::clamp(start, b.fine, b.coarse), before = 0, bytes_before = 0;
  double saved = sizes.of_a_bit();  // by twice the bound
  for (int step = 0; step < most_steps && b.coarse - b.fine > resolution; ++step) {
    const double bytes = sizes.within(at);
    if (bytes <= most_bytes) {
      enough = b.coarse = at;
      if (bytes >= close_enough * most_bytes) break;
    } else {
      b.fine = at;
    }
    const double slope = step == 0 ? 0 : (bytes_before - bytes) / (at - before);
    if (slope > saved / 64) saved = slope;
    before = std::exchange(at, at + (bytes - aim) / saved);
    bytes_before = bytes;
    if (!(at > b.fine && at < b.coarse)) at = (b.fine + b.coarse) / 2;
  }
  if (!enough && sizes.within(b.coarse) <= most_bytes) enough = b.coarse;
  return enough;
}

}  // namespace

Grid grid_within_bytes(const Codec& codec, ConstArray x, Extents extents, std::size_t most_bytes, int threads) {
  const Range range = scan(x, threads);
  const auto most = static_cast<double>(most_bytes);
  const Sizes all(codec, x, extents, range.max_abs(), threads);
  const Grid lossless{.dtype = x.dtype};
  const Bracket bounds = all_bounds(x.dtype, range);
  std::optional<double> found;
  if (x.count <= 2 * sample_chunks * chunk) {
    if (all.on(lossless) <= most) return lossless;
    found = bisected(all, most, bounds);
    if (!found && x.count < chunk) return lossless;
  } else {
    const std::vector<std::uint8_t> chunks = sample_of(x);
    const ConstArray part{chunks.data(), sample_chunks * chunk, x.dtype};
    const double share = most * static_cast<double>(part.count) / static_cast<double>(x.count);
    const Sizes sample(codec, part, {}, range.max_abs(), threads);
    if (sample.on(lossless) <= share && all.on(lossless) <= most) return lossless;
    found = refined(all, most, bounds, bisected(sample, share, bounds).value_or(bounds.coarse));
    if (!found && all.on(lossless) <= most) return lossless;
  }
  if (found) return all.grid(*found);
  std::string beside =
      range.non_finite == 0 ? "" : " (" + std::to_string(range.non_finite) + " are NaN or infinite, which are kept)";
  if (std::log2(range.max_abs()) > all_steps(x.dtype).coarse - 1) beside += " (some lie beyond the largest step)";
  throw Error(Code::unsupported, "bound: no bound brings these " + std::to_string(x.count) + " elements to " +
                                     std::to_string(most_bytes) + " bytes by " + std::string(codec.name()) + beside +
                                     "; ask for a smaller ratio");
}

}  // namespace laconic
