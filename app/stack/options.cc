#include "stack/options.h"

#include <fmt/core.h>

#include <cctype>
#include <cmath>
#include <cstdlib>

#include "exit_code.h"

namespace laconic::app {

void StackOptions::add_to(CommandSyntax c) {
  c.arguments("files", files, "Images: one array a file, or one file whose slowest axis counts images");
  hint.add_to(c, "files");
  c.option("--set", set, "Sample images: rtm, exposures, ensemble, or a field's name");
  c.option("--data", data, "Folder with sample fields and MANIFEST.json");
  c.option("--op", op, "sum or average");
  c.option("-b,--bound", bound, "Bound on every value of the result");
  c.option("--size", size, "Images are repeated side by side to this many bytes a rank; 1 leaves them as they are");
  c.option("-o,--out", out, "Folder for pictures: exact, Laconic, difference");
  c.option("--wire", interface, "Count the bytes that cross this network interface, such as eth0");
  c.option("--link", link, "Rate of that link, such as 1gbit: gives the efficiency");
  c.option("-n,--ranks", ranks, "Ranks, played by threads (an MPI launcher decides otherwise)");
  c.option("-t,--threads", threads, "Codec threads of a rank");
  c.option("--repetitions", repetitions, "Repetitions; the median is reported");
  c.excludes("--set", "files");
  c.excludes("--data", "files");
}

double parse_link_rate(const std::string& text) {
  if (text.empty()) return 0;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  std::string unit;
  for (; *end != '\0'; ++end) unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*end)));
  double bits = 0;
  if (unit == "gbit" || unit == "gb/s" || unit == "gbps") bits = 1e9;
  if (unit == "mbit" || unit == "mb/s" || unit == "mbps") bits = 1e6;
  if (!(value > 0) || !std::isfinite(value) || bits == 0)
    throw Failure(Exit::usage, fmt::format("--link '{}' is not understood; write for example 1gbit or 2500mbit", text));
  return value * bits / 8;
}

}  // namespace laconic::app
