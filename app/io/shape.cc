#include "io/shape.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>

#include "exit_code.h"

namespace laconic::app {

std::uint64_t count_of(const Shape& shape, const std::string& file) {
  const std::uint64_t most =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / size_of(shape.dtype);
  std::uint64_t n = 1;
  for (const std::uint64_t d : shape.dims)
    if (d == 0) return 0;
  for (const std::uint64_t d : shape.dims) {
    if (n > most / d)
      throw Failure(Exit::bad_data, fmt::format("'{}': dims {} are larger than any file", file, to_string(shape.dims)));
    n *= d;
  }
  return n;
}

Dims parse_dims(std::string_view text) {
  Dims dims;
  const char* p = text.data();
  const char* const end = p + text.size();
  for (;;) {
    std::uint64_t value = 0;
    const auto [next, error] = std::from_chars(p, end, value);
    if (error != std::errc() || dims.size() == max_dims)
      throw Failure(Exit::usage, fmt::format("--dims '{}' is not a list of extents such as 12x200x400", text));
    dims.push_back(value);
    if (next == end) return dims;
    if (*next != 'x' && *next != ',')
      throw Failure(Exit::usage, fmt::format("--dims '{}': '{}' is not allowed; write 12x200x400", text, *next));
    p = next + 1;
  }
}

std::string to_string(const Dims& dims) {
  if (dims.empty()) return "scalar";
  std::string text;
  for (const std::uint64_t d : dims) text += fmt::format("{}{}", text.empty() ? "" : "x", d);
  return text;
}

Extents extents_of(const Dims& dims) {
  if (dims.size() < 2) return {};
  return {static_cast<std::size_t>(dims.back()), dims.size() > 2 ? static_cast<std::size_t>(dims[dims.size() - 2]) : 0};
}

}  // namespace laconic::app
