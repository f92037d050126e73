// Writes the golden frames and what they decode to, as checksums, into a folder. Only for a new version of the format:
// the frames of a version never change.
#include <cstdio>
#include <fstream>

#include "golden/golden_cases.h"
#include "support/patched_crc.h"

using namespace laconic;        // NOLINT(google-build-using-namespace)
using namespace laconic::test;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden <folder>\n");
    return 2;
  }
  const std::string folder = argv[1];
  std::ofstream decodes(folder + "/decoded.txt");
  for (const GoldenCase& c : golden_cases()) {
    std::ofstream out(folder + "/" + c.name + ".lcn", std::ios::binary);
    out.write(reinterpret_cast<const char*>(c.made.frame.data()), static_cast<std::streamsize>(c.made.frame.size()));
    const Array y = decoded(c.input, c.made);
    decodes << c.name << " " << ~crc32c(0xFFFFFFFFU, y.data(), y.size_bytes()) << "\n";
    if (!out || !decodes) {
      std::fprintf(stderr, "%s: cannot write\n", folder.c_str());
      return 1;
    }
  }
  return 0;
}
