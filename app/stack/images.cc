#include "stack/images.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/dataset.h"
#include "exit_code.h"
#include "report/quality.h"

namespace laconic::app {
namespace {

/// Short names of the sample fields that hold images of one thing along their slowest axis.
std::string field_name(const std::string& set) {
  if (set == "rtm") return "wave_computed_marmousi_rtm_shots";
  if (set == "exposures") return "astronomy_decam_exposures";
  if (set == "ensemble") return "climate_ensemble_TREFHT";
  if (set == "gradients") return "ml_mnist_cnn_gradients";
  return set;
}

void set_extents(ImageSet& set, const Dims& image_dims) {
  set.cols = image_dims.empty() ? 1 : image_dims.back();
  set.rows = image_dims.size() < 2 ? 1 : image_dims[image_dims.size() - 2];
  set.slabs = 1;
  for (std::size_t i = 0; i + 2 < image_dims.size(); ++i) set.slabs *= image_dims[i];
}

/// Appends all values of a file.
void append_file(ImageSet& set, const ArrayReader& in) {
  const std::size_t before = set.bytes.size();
  set.bytes.resize(before + in.bytes());
  in.read(0, {set.bytes.data() + before, static_cast<std::size_t>(in.count()), set.dtype});
}

ImageSet from_stacked_file(const std::string& name, const ArrayReader& in) {
  if (in.shape().dims.size() < 2)
    throw Failure(Exit::bad_data,
                  fmt::format("'{}' is {}: a single file must have an axis that counts images, and more", name,
                              to_string(in.shape().dims)));
  ImageSet set;
  set.name = name;
  set.dtype = in.shape().dtype;
  set.images = in.shape().dims[0];
  set_extents(set, Dims(in.shape().dims.begin() + 1, in.shape().dims.end()));
  append_file(set, in);
  return set;
}

ImageSet from_files(const std::vector<std::string>& files, const ArrayHint& hint) {
  ImageSet set;
  set.name = fmt::format("{} files", files.size());
  Shape first;
  for (const std::string& path : files) {
    const ArrayReader in(path, hint);
    if (set.images++ == 0) {
      first = in.shape();
      set.dtype = first.dtype;
      set_extents(set, first.dims);
    } else if (!(in.shape() == first)) {
      throw Failure(Exit::bad_data, fmt::format("'{}' is {} of {}, but '{}' is {} of {}; images must have one shape",
                                                path, to_string(in.shape().dims), name_of(in.shape().dtype), files[0],
                                                to_string(first.dims), name_of(first.dtype)));
    }
    append_file(set, in);
  }
  return set;
}

ImageSet from_samples(const StackOptions& options) {
  const std::string wanted = field_name(options.set);
  std::string known;
  for (const Field& f : list_fields(find_data_folder(options.data))) {
    if (f.name == wanted) return from_stacked_file(f.name, ArrayReader(f.path, {f.shape.dtype, f.shape.dims}));
    if (f.stack) known += " " + f.name;
  }
  throw Failure(Exit::no_input,
                fmt::format("--set {}: no such field among the samples; there are:{}", options.set, known));
}

template <class T>
std::vector<std::uint8_t> to_bytes(const std::vector<long double>& values) {
  std::vector<std::uint8_t> out(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T v = static_cast<T>(values[i]);
    std::memcpy(out.data() + i * sizeof(T), &v, sizeof(T));
  }
  return out;
}

}  // namespace

ImageSet load_images(const StackOptions& options) {
  ImageSet set;
  if (options.files.empty()) {
    set = from_samples(options);
  } else if (options.files.size() == 1) {
    set = from_stacked_file(options.files[0], ArrayReader(options.files[0], options.hint.hint()));
  } else {
    set = from_files(options.files, options.hint.hint());
  }
  const std::string first =
      options.files.size() > 1 ? fmt::format("'{}', the first of {},", options.files[0], set.name) : set.name;
  if (set.dtype != DType::f32 && set.dtype != DType::f64)
    throw Failure(Exit::bad_data, fmt::format("{} holds {}; images must be f32 or f64", first, name_of(set.dtype)));
  if (set.images == 0 || set.image_values() == 0)
    throw Failure(Exit::bad_data, fmt::format("{} holds no image", first));
  return set;
}

Mosaic choose_mosaic(const ImageSet& set, std::size_t bytes) {
  const std::size_t copies = std::max<std::size_t>(1, bytes / (set.image_values() * size_of(set.dtype)));
  const auto across = static_cast<std::size_t>(std::sqrt(static_cast<double>(copies)));
  return {copies / across, across};
}

std::vector<std::uint8_t> share_of_rank(const ImageSet& set, int rank, int ranks, Op op) {
  if (static_cast<std::size_t>(ranks) > set.images)
    throw Failure(Exit::bad_data, fmt::format("{} has {} images, too few for {} ranks; use at most {}", set.name,
                                              set.images, ranks, set.images));
  const std::size_t n = set.image_values();
  std::vector<long double> sum(n, 0);
  for (auto i = static_cast<std::size_t>(rank); i < set.images; i += static_cast<std::size_t>(ranks))
    for (std::size_t k = 0; k < n; ++k) sum[k] += value_at(set.image(i), k);
  if (op == Op::average)
    for (auto& v : sum) v *= static_cast<long double>(ranks) / static_cast<long double>(set.images);
  return set.dtype == DType::f64 ? to_bytes<double>(sum) : to_bytes<float>(sum);
}

std::vector<std::uint8_t> lay_mosaic(const ImageSet& set, const std::vector<std::uint8_t>& image,
                                     const Mosaic& mosaic) {
  const std::size_t row = set.cols * size_of(set.dtype);
  std::vector<std::uint8_t> out(image.size() * mosaic.down * mosaic.across);
  std::uint8_t* to = out.data();
  for (std::size_t d = 0; d < mosaic.down; ++d)
    for (std::size_t r = 0; r < image.size() / row; ++r)
      for (std::size_t a = 0; a < mosaic.across; ++a, to += row) std::memcpy(to, image.data() + r * row, row);
  return out;
}

std::vector<ExactSum> exact_stack(const ImageSet& set, int ranks, Op op) {
  std::vector<ExactSum> sum(set.image_values());
  for (int r = 0; r < ranks; ++r) {
    const std::vector<std::uint8_t> share = share_of_rank(set, r, ranks, op);
    const ConstArray values{share.data(), sum.size(), set.dtype};
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k].add(value_at(values, k));
  }
  if (op == Op::average)
    for (ExactSum& s : sum) s.divide(ranks);
  return sum;
}

}  // namespace laconic::app
