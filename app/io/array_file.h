// Uncompressed arrays on disk: .npy, or raw little-endian values whose type and dims come from options or from the
// name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/array.h"
#include "io/file.h"
#include "io/shape.h"

namespace laconic::app {

/// How an array is laid out in its file. The values are stored in .lcz headers: never renumber.
enum class FileKind : std::uint8_t { raw = 0, npy = 1 };

/// What the user said about a raw file. Not needed for .npy and for names such as wave_12x200x400.f32.
struct ArrayHint {
  std::optional<DType> dtype;
  std::optional<Dims> dims;
};

/// An array file opened for reading in pieces.
class ArrayReader {
 public:
  /// Throws Failure: no_input, or bad_data when the size, dims or header do not fit together.
  ArrayReader(const std::string& path, const ArrayHint& hint);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] FileKind kind() const { return kind_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t bytes() const { return count_ * size_of(shape_.dtype); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  /// Reads out.count elements from element `first` on. out.dtype must be the file's.
  void read(std::uint64_t first, MutArray out) const;

 private:
  void describe_raw(const ArrayHint& hint);
  void check_size() const;

  InputFile file_;
  Shape shape_;
  FileKind kind_ = FileKind::raw;
  bool named_dims_ = false;  // the dims are from the file's name
  std::uint64_t offset_ = 0;
  std::uint64_t count_ = 0;
};

/// Guesses type and dims from a name that ends in _AxBxC.f32 (dims optional) or .bf16, .i32, ...
ArrayHint hint_from_name(const std::string& path);

/// .npy gives npy; everything else raw.
FileKind kind_from_name(const std::string& path);

/// The bytes that precede the values in a file of this kind (none for raw).
std::vector<std::uint8_t> header_for(FileKind kind, const Shape& shape);

}  // namespace laconic::app
