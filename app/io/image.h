// Small RGB images: pixels, text, colour maps, PNG.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace laconic::app {

struct Colour {
  std::uint8_t r = 0, g = 0, b = 0;
};

class Image {
 public:
  Image(std::size_t width, std::size_t height, Colour background);
  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::size_t height() const { return height_; }
  /// Outside of the image: nothing happens.
  void set(std::size_t x, std::size_t y, Colour c);
  /// Copies another image to this place.
  void place(const Image& other, std::size_t x, std::size_t y);
  /// Letters of 5 x 7 dots, 6 dots apart; lower case is shown as upper case, unknown characters as blanks.
  void text(std::string_view words, std::size_t x, std::size_t y, Colour c, std::size_t scale = 1);
  /// Atomic, as every output of the command. Throws Failure(no_output).
  void write_png(const std::string& path) const;

 private:
  std::size_t width_, height_;
  std::vector<Colour> pixels_;
};

inline constexpr std::size_t glyph_height = 7;
inline constexpr std::size_t glyph_step = 6;

/// Perceptually even, dark blue to yellow; 0..1, clamped. NaN is grey.
Colour sequential_colour(double t);
/// Blue through white to red; -1..1, clamped. NaN is grey.
Colour diverging_colour(double t);

}  // namespace laconic::app
