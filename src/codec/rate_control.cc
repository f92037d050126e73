#include "codec/rate_control.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/range.h"

namespace laconic {
namespace {

constexpr std::size_t chunk = 2048;        // codecs whose chunks stand alone encode a sample's as the array's
constexpr std::size_t sample_chunks = 64;  // beyond twice as many a sample is taken
constexpr int per_octave = 16;             // bounds: some hundredths of the bytes at usual ratios
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

/// Bound number k, 2^(k / 16). Processors and libraries come to the same bits, as by std::exp2() they need not.
double bound_of(int k) {
  static constexpr std::array<double, per_octave> roots{
      0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
      0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
      0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
      0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0};
  return std::ldexp(roots[static_cast<std::size_t>(k & (per_octave - 1))], k >> 4);
}

/// What an array takes within each bound.
class Sizes {
 public:
  Sizes(const Codec& codec, ConstArray x, Extents extents, double max_abs, int threads)
      : codec_(codec), x_(x), extents_(extents), max_abs_(max_abs), threads_(threads) {
    capacity_ = codec.capacity(x.dtype, x.count);
    room_.reset(new std::uint8_t[capacity_]);
  }

  [[nodiscard]] Grid grid(int k) const { return make_grid(x_.dtype, bound_of(k), max_abs_); }
  [[nodiscard]] double on(const Grid& grid) const {
    return static_cast<double>(codec_.encode(x_, grid, extents_, {room_.get(), capacity_}, threads_, nullptr));
  }
  [[nodiscard]] double within(int k) const { return on(grid(k)); }
  /// Bytes that the next bound saves at most: an octave saves a bit of each element.
  [[nodiscard]] double of_a_bound() const { return static_cast<double>(x_.count) / 8 / per_octave; }

 private:
  const Codec& codec_;
  ConstArray x_;
  Extents extents_;
  double max_abs_;
  int threads_;
  std::size_t capacity_ = 0;
  std::unique_ptr<std::uint8_t[]> room_;
};

/// A bound within which too much is left, and one that is coarse enough, as far as is known.
struct Bracket {
  int fine, coarse;
};

/// Of all that tells bounds apart: from the smallest step to where 0 is left, of zfp too, which keeps some bits more.
Bracket all_bounds(DType dtype, const Range& range) {
  const StepExponents steps = step_exponents(dtype);
  const int largest = range.max_abs() > 0 ? std::ilogb(range.max_abs()) + 10 : steps.least;
  return {steps.least * per_octave, std::clamp(largest, steps.least + 1, steps.most) * per_octave};
}

/// The finest that is enough; nothing where the coarsest is not. By ever longer strides from there, since encoding is
/// slowest within bounds that hardly any value keeps.
std::optional<int> bisected(const Sizes& sizes, double most_bytes, Bracket b) {
  if (sizes.within(b.coarse) > most_bytes) return std::nullopt;
  const auto try_at = [&](int k) { (sizes.within(k) <= most_bytes ? b.coarse : b.fine) = k; };
  for (int stride = 2 * per_octave; b.coarse - stride > b.fine; stride *= 2) try_at(b.coarse - stride);
  while (b.coarse - b.fine > 1) try_at(std::midpoint(b.fine, b.coarse));
  return b.coarse;
}

/// The same from `start`, which a sample suggests: by secants to the middle of what is close enough.
std::optional<int> refined(const Sizes& sizes, double most_bytes, Bracket b, int start) {
  const double aim = most_bytes * (1 + close_enough) / 2;
  std::optional<int> enough;
  int at = std::clamp(start, b.fine, b.coarse), before = at;
  double bytes_before = 0, saved = sizes.of_a_bound();
  for (int step = 0; step < most_steps && b.coarse - b.fine > 1; ++step) {
    const double bytes = sizes.within(at);
    if (bytes <= most_bytes) {
      enough = b.coarse = at;
      if (bytes >= close_enough * most_bytes) break;
    } else {
      b.fine = at;
    }
    const double slope = step == 0 ? 0 : (bytes_before - bytes) / (at - before);
    if (slope > saved / 64) saved = slope;
    before = at;
    bytes_before = bytes;
    const double next = at + std::round((bytes - aim) / saved);
    at = next > b.fine && next < b.coarse ? static_cast<int>(next) : std::midpoint(b.fine, b.coarse);
  }
  if (!enough && sizes.within(b.coarse) <= most_bytes) enough = b.coarse;
  return enough;
}

}  // namespace

Grid grid_within_bytes(const Codec& codec, ConstArray x, Extents extents, std::size_t most_bytes, int threads,
                       BeyondRatio beyond) {
  const Range range = scan(x, threads);
  const auto most = static_cast<double>(most_bytes);
  const Sizes all(codec, x, extents, range.max_abs(), threads);
  const Grid lossless{.dtype = x.dtype};
  const Bracket bounds = all_bounds(x.dtype, range);
  std::optional<int> found;
  if (x.count <= 2 * sample_chunks * chunk) {
    if (all.on(lossless) <= most) return lossless;
    found = bisected(all, most, bounds);
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
  if (x.count < chunk || beyond == BeyondRatio::lossless) return lossless;
  std::string beside =
      range.non_finite == 0 ? "" : " (" + std::to_string(range.non_finite) + " are NaN or infinite, which are kept)";
  if (std::ldexp(1.0, step_exponents(x.dtype).most) < range.max_abs()) beside += " (some lie beyond the largest step)";
  throw Error(Code::unsupported, "bound: no bound brings these " + std::to_string(x.count) + " elements to " +
                                     std::to_string(most_bytes) + " bytes by " + std::string(codec.name()) + beside +
                                     "; ask for a smaller ratio");
}

}  // namespace laconic
