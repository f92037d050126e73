#include "io/array_file.h"

#include <fmt/core.h>

#include <filesystem>

#include "core/error.h"
#include "exit_code.h"
#include "io/npy.h"

namespace laconic::app {
namespace {

constexpr const char* how_to_describe = "say what it holds with --dtype f32 --dims 12x200x400";

/// The dtype whose short name is exactly this extension, if any.
std::optional<DType> dtype_from_extension(const std::string& extension) {
  for (int i = 1; is_valid(static_cast<DType>(i)); ++i)
    if (extension == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace

ArrayHint hint_from_name(const std::string& path) {
  const std::filesystem::path p(path);
  const std::string extension = p.extension().string();
  const std::string stem = p.stem().string();
  ArrayHint hint;
  if (extension.size() > 1) hint.dtype = dtype_from_extension(extension.substr(1));
  const std::size_t underscore = stem.rfind('_');
  if (!hint.dtype || underscore == std::string::npos) return hint;
  const std::string tail = stem.substr(underscore + 1);
  if (tail.find_first_not_of("0123456789x") == std::string::npos) {
    try {
      hint.dims = parse_dims(tail);
    } catch (const Failure&) {
      hint.dims.reset();  // a name is only a hint: "run_x.f32" has no dims
    }
  }
  return hint;
}

FileKind kind_from_name(const std::string& path) {
  return std::filesystem::path(path).extension() == ".npy" ? FileKind::npy : FileKind::raw;
}

std::vector<std::uint8_t> header_for(FileKind kind, const Shape& shape) {
  return kind == FileKind::npy ? make_npy_header(shape) : std::vector<std::uint8_t>{};
}

ArrayReader::ArrayReader(const std::string& path, const ArrayHint& hint) : file_(path) {
  if (is_npy(file_)) {
    const NpyHeader header = read_npy_header(file_);
    kind_ = FileKind::npy;
    shape_ = header.shape;
    offset_ = header.data_offset;
    if (hint.dtype && *hint.dtype != shape_.dtype)
      throw Failure(Exit::bad_data, fmt::format("--dtype {} contradicts '{}', which holds {}", name_of(*hint.dtype),
                                                path, name_of(shape_.dtype)));
    if (hint.dims && *hint.dims != shape_.dims)
      throw Failure(Exit::bad_data, fmt::format("--dims {} contradict '{}', which is {}", to_string(*hint.dims), path,
                                                to_string(shape_.dims)));
  } else {
    if (kind_from_name(path) == FileKind::npy)
      throw Failure(Exit::bad_data, fmt::format("'{}' is named .npy but does not begin like one", path));
    describe_raw(hint);
  }
  count_ = count_of(shape_, path);
  check_size();
}

void ArrayReader::describe_raw(const ArrayHint& hint) {
  const ArrayHint named = hint_from_name(path());
  if (!hint.dtype && !named.dtype)
    throw Failure(Exit::usage, fmt::format("the type of '{}' is unknown; {}", path(), how_to_describe));
  shape_.dtype = hint.dtype ? *hint.dtype : *named.dtype;
  if (hint.dims) {
    shape_.dims = *hint.dims;
  } else if (named.dims) {
    shape_.dims = *named.dims;
    named_dims_ = true;
  } else {
    const std::uint64_t element = size_of(shape_.dtype);
    if (file_.size() % element != 0)
      throw Failure(Exit::bad_data, fmt::format("'{}' has {} bytes, which is no multiple of {} ({}); {}", path(),
                                                file_.size(), element, name_of(shape_.dtype), how_to_describe));
    shape_.dims = {file_.size() / element};
  }
}

void ArrayReader::check_size() const {
  const std::uint64_t have = file_.size() - offset_;
  if (have == bytes()) return;
  const std::uint64_t element = size_of(shape_.dtype);
  std::string advice = "check --dtype and --dims";
  if (named_dims_ && have % element == 0)
    advice = fmt::format("the dims are from its name; if that means something else, pass --dims {}", have / element);
  throw Failure(Exit::bad_data, fmt::format("'{}' holds {} bytes of values, but {} of {} need {}; {}", path(), have,
                                            to_string(shape_.dims), name_of(shape_.dtype), bytes(), advice));
}

void ArrayReader::read(std::uint64_t first, MutArray out) const {
  if (out.dtype != shape_.dtype || first > count_ || out.count > count_ - first)
    throw Error(Code::internal, fmt::format("read of {} elements at {} from '{}'", out.count, first, path()));
  file_.read_at(offset_ + first * size_of(shape_.dtype), {static_cast<std::uint8_t*>(out.data), out.bytes()});
}

}  // namespace laconic::app
