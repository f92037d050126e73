#include "arguments.h"

#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <limits>

#include "exit_code.h"

namespace laconic::app {

void HintOptions::add_to(CommandSyntax command, const std::string& files) {
  command.option("--dtype", dtype,
                 "Element type of a raw file: f32 f64 f16 bf16 i32 i64 u32 u64 (default: from its name)");
  command.option("--dims", dims, "Extents of a raw file, slowest first, such as 12x200x400 (default: from its name)");
  command.needs("--dtype", files);
  command.needs("--dims", files);
}

ArrayHint HintOptions::hint() const {
  ArrayHint hint;
  if (!dtype.empty()) hint.dtype = parse_dtype(dtype);
  if (!dims.empty()) hint.dims = parse_dims(dims);
  return hint;
}

std::size_t parse_size(const std::string& text) {
  const auto fail = [&] {
    return Failure(Exit::usage, fmt::format("size '{}' is not understood; write for example 64MiB or 256k", text));
  };
  std::size_t value = 0;
  const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) value = std::numeric_limits<std::size_t>::max();
  if (error == std::errc::invalid_argument || value == 0) throw fail();
  const std::string unit(next, text.data() + text.size());
  int shift = 0;
  if (!unit.empty()) {
    const std::size_t which =
        std::string("kmg").find(static_cast<char>(std::tolower(static_cast<unsigned char>(unit[0]))));
    const std::string rest = unit.substr(1);
    if (which == std::string::npos || (!rest.empty() && rest != "iB" && rest != "B")) throw fail();
    shift = 10 * (static_cast<int>(which) + 1);
  }
  if (value > (std::size_t{1} << 40) >> shift)
    throw Failure(Exit::usage, fmt::format("size '{}' is more than 1024 GiB", text));
  return value << shift;
}

int checked_threads(int threads) {
  if (threads < 1 || threads > 1024)
    throw Failure(Exit::usage, fmt::format("--threads {} is not between 1 and 1024", threads));
  return threads;
}

}  // namespace laconic::app
