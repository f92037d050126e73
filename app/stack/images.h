// The images of a stack: loading them, dealing them to the ranks, and what the exact answer is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/array.h"
#include "core/op.h"
#include "report/exact_sum.h"
#include "stack/options.h"

namespace laconic::app {

/// Images of one shape, f32 or f64, in memory.
struct ImageSet {
  std::string name;
  DType dtype = DType::f32;
  std::size_t images = 0;
  std::size_t slabs = 1;  ///< an image of more than two axes is a pile of slabs
  std::size_t rows = 1;
  std::size_t cols = 1;
  std::vector<std::uint8_t> bytes;

  [[nodiscard]] std::size_t image_values() const { return slabs * rows * cols; }
  [[nodiscard]] ConstArray image(std::size_t i) const {
    const std::size_t n = image_values();
    return {bytes.data() + i * n * size_of(dtype), n, dtype};
  }
};

/// Throws Failure when files are missing, differ in shape, or hold neither f32 nor f64.
ImageSet load_images(const StackOptions& options);

/// How often an image is repeated down and across to reach a size.
struct Mosaic {
  std::size_t down = 1;
  std::size_t across = 1;
};

/// At most `bytes` where one image is smaller; one image otherwise.
Mosaic choose_mosaic(const ImageSet& set, std::size_t bytes);

/// Rank r takes images r, r + ranks, ... and adds them up by itself (for an average: scaled so that the average over
/// ranks is the average over images). One image in size, rounded to the dtype. Throws Failure(bad_data) with more ranks
/// than images.
std::vector<std::uint8_t> share_of_rank(const ImageSet& set, int rank, int ranks, Op op);

/// An image repeated as the mosaic says.
std::vector<std::uint8_t> lay_mosaic(const ImageSet& set, const std::vector<std::uint8_t>& image, const Mosaic& mosaic);

/// The sum (average) of all shares in extended precision, one image in size.
std::vector<ExactSum> exact_stack(const ImageSet& set, int ranks, Op op);

}  // namespace laconic::app
