#include "stack/pictures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "io/image.h"

namespace laconic::app {
namespace {

constexpr std::size_t most_pixels = 800;   // along a side; more is averaged down
constexpr std::size_t least_pixels = 400;  // fewer is magnified
constexpr std::size_t margin = 10;
constexpr std::size_t caption_height = 3 * (glyph_height + 5) + margin;
constexpr Colour paper = {255, 255, 255};
constexpr Colour ink = {30, 30, 30};

/// Values on a rectangle.
struct Plane {
  std::size_t rows = 0, cols = 0;
  std::vector<double> values;
};

/// The first slab as a plane; a single long row is folded into a square.
Plane first_slab(const std::vector<double>& values, const ImageSet& set) {
  if (set.rows > 1)
    return {set.rows, set.cols, {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(set.rows * set.cols)}};
  const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(set.cols)));
  return {side, side, {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(side * side)}};
}

/// Means over rectangles of `down` by `across`.
Plane shrink(const Plane& p, std::size_t down, std::size_t across) {
  Plane out{p.rows / down, p.cols / across, {}};
  for (std::size_t r = 0; r < out.rows; ++r)
    for (std::size_t c = 0; c < out.cols; ++c) {
      double sum = 0;
      for (std::size_t j = 0; j < down; ++j)
        for (std::size_t i = 0; i < across; ++i) sum += p.values[(r * down + j) * p.cols + c * across + i];
      out.values.push_back(sum / static_cast<double>(down * across));
    }
  return out;
}

/// As it is, or shrunk alike in both directions, as far as there is anything to shrink.
Plane fit(Plane p) {
  const std::size_t factor = (std::max(p.rows, p.cols) + most_pixels - 1) / most_pixels;
  if (factor <= 1) return p;
  return shrink(p, std::min(factor, p.rows), std::min(factor, p.cols));
}

/// The values that 1 % lie below and above: a few extremes must not take all the colours.
std::pair<double, double> colour_limits(const Plane& p) {
  std::vector<double> finite;
  std::copy_if(p.values.begin(), p.values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  if (finite.empty()) return {0, 1};
  std::sort(finite.begin(), finite.end());
  const std::size_t cut = finite.size() / 100;
  const double low = finite[cut];
  const double high = finite[finite.size() - 1 - cut];
  return high > low ? std::pair{low, high} : std::pair{low, low + 1};
}

template <class ToColour>
Image paint(const Plane& p, ToColour to_colour) {
  const std::size_t zoom = std::max<std::size_t>(1, least_pixels / std::max(p.rows, p.cols));
  Image out(p.cols * zoom, p.rows * zoom, paper);
  for (std::size_t y = 0; y < out.height(); ++y)
    for (std::size_t x = 0; x < out.width(); ++x) out.set(x, y, to_colour(p.values[y / zoom * p.cols + x / zoom]));
  return out;
}

/// A picture under up to three lines of text.
struct Panel {
  const Image& picture;
  std::vector<std::string> caption;
};

Image side_by_side(const std::vector<Panel>& panels) {
  std::size_t panel_width = 0;
  std::size_t height = 0;
  for (const Panel& p : panels) {
    panel_width = std::max(panel_width, p.picture.width());
    for (const std::string& line : p.caption) panel_width = std::max(panel_width, line.size() * glyph_step);
    height = std::max(height, p.picture.height());
  }
  Image sheet(panels.size() * (panel_width + margin) + margin, height + caption_height + 2 * margin, paper);
  std::size_t x = margin;
  for (const Panel& p : panels) {
    std::size_t y = margin;
    for (const std::string& line : p.caption) {
      sheet.text(line, x, y, ink);
      y += glyph_height + 5;
    }
    sheet.place(p.picture, x, margin + caption_height);
    x += panel_width + margin;
  }
  return sheet;
}

}  // namespace

std::vector<std::string> write_pictures(const StackResult& result, const ImageSet& set, const std::string& folder) {
  make_folder(folder);
  Plane difference = first_slab(result.exact, set);
  const Plane laconic_full = first_slab(result.picture, set);
  for (std::size_t i = 0; i < difference.values.size(); ++i)
    difference.values[i] = laconic_full.values[i] - difference.values[i];
  const Plane exact = fit(first_slab(result.exact, set));
  const Plane laconic = fit(laconic_full);
  const auto [low, high] = colour_limits(exact);
  const auto by_value = [from = low, to = high](double v) { return sequential_colour((v - from) / (to - from)); };
  const double full = result.absolute_bound > 0 ? result.absolute_bound : 1;
  const Image exact_picture = paint(exact, by_value);
  const Image laconic_picture = paint(laconic, by_value);
  // Errors are not averaged when shrinking: they would cancel. Every nth is shown.
  Plane shown{exact.rows, exact.cols, {}};
  const std::size_t step_r = difference.rows / exact.rows;
  const std::size_t step_c = difference.cols / exact.cols;
  for (std::size_t r = 0; r < shown.rows; ++r)
    for (std::size_t c = 0; c < shown.cols; ++c)
      shown.values.push_back(difference.values[r * step_r * difference.cols + c * step_c]);
  const Image difference_picture = paint(shown, [full](double v) { return diverging_colour(v / full); });

  const Quality& q = result.laconic.quality;
  const Image sheet = side_by_side(
      {{exact_picture,
        {fmt::format("exact {}", result.op), fmt::format("{} images, {} ranks", result.images, result.ranks)}},
       {laconic_picture,
        {fmt::format("laconic at {}", result.bound), fmt::format("{:.1f} x fewer bytes", result.ratio()),
         fmt::format("PSNR {:.1f} dB", q.psnr())}},
       {difference_picture,
        {"difference", fmt::format("full colour = bound = {:.3g}", result.absolute_bound),
         fmt::format("max error = {:.3f} of it",
                     result.absolute_bound > 0 ? q.max_error / result.absolute_bound : 0.0)}}});
  const std::filesystem::path base(folder);
  std::vector<std::string> paths;
  const auto write = [&](const Image& image, const char* name) {
    paths.push_back((base / name).string());
    image.write_png(paths.back());
  };
  write(exact_picture, "exact.png");
  write(laconic_picture, "laconic.png");
  write(difference_picture, "difference.png");
  write(sheet, "side_by_side.png");
  return paths;
}

}  // namespace laconic::app
