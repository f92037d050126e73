#include "stack/options.h"

#include <fmt/core.h>

#include <cctype>
#include <cstdlib>

#include "exit_code.h"

namespace laconic::app {

void StackOptions::add_to(CLI::App& c) {
  c.add_option("files", files, "Images: one array a file, or one file whose slowest axis counts images");
  hint.add_to(c);
  c.add_option("--set", set, "Sample images: rtm, exposures, ensemble, gradients, or a field's name")
      ->capture_default_str();
  c.add_option("--data", data, "Folder with sample fields and MANIFEST.json");
  c.add_option("--op", op, "sum or average")->capture_default_str();
  c.add_option("-b,--bound", bound, "Bound on every value of the result")->capture_default_str();
  c.add_option("--size", size, "Images are repeated side by side to this many bytes a rank; 1 leaves them as they are")
      ->capture_default_str();
  c.add_option("-o,--out", out, "Folder for pictures: exact, Laconic, difference");
  c.add_option("--wire", interface, "Count the bytes that cross this network interface, such as eth0");
  c.add_option("--link", link, "Rate of that link, such as 1gbit: gives the efficiency");
  c.add_option("-n,--ranks", ranks, "Ranks, played by threads (an MPI launcher decides otherwise)")
      ->capture_default_str();
  c.add_option("-t,--threads", threads, "Codec threads of a rank")->capture_default_str();
  c.add_option("--repetitions", repetitions, "Repetitions; the median is reported")->capture_default_str();
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
  if (!(value > 0) || bits == 0)
    throw Failure(Exit::usage, fmt::format("--link '{}' is not understood; write for example 1gbit or 2500mbit", text));
  return value * bits / 8;
}

}  // namespace laconic::app
