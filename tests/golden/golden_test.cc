// Version 1 of the format stays what it is: every target still writes the golden frames byte for byte, and reads from
// them what was in them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "golden/golden_cases.h"
#include "support/patched_crc.h"

namespace laconic::test {
namespace {

const std::string folder = "tests/golden/v1/";  // tests run in the source tree's root

std::vector<std::uint8_t> file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::map<std::string, std::uint32_t> decoded_checksums() {
  std::ifstream in(folder + "decoded.txt");
  EXPECT_TRUE(in) << folder << "decoded.txt";
  std::map<std::string, std::uint32_t> sums;
  std::string name;
  std::uint32_t sum = 0;
  while (in >> name >> sum) sums[name] = sum;
  return sums;
}

std::vector<slice::Target> all_targets() {
  std::vector<slice::Target> t = fast_targets();
  t.push_back(slice::Target::scalar);
  return t;
}

TEST(Golden, EveryTargetWritesTheSameFramesAsEver) {
  for (const auto target : all_targets()) {
    const OnTarget guard(target);
    for (const GoldenCase& c : golden_cases())
      EXPECT_TRUE(c.made.frame == file(folder + c.name + ".lcn")) << c.name << " on " << slice::name_of(target);
  }
}

TEST(Golden, EveryTargetReadsFromThemWhatWasInThem) {
  const auto expected = decoded_checksums();
  const std::vector<GoldenCase> cases = golden_cases();
  ASSERT_EQ(expected.size(), cases.size());
  for (const auto target : all_targets()) {
    const OnTarget guard(target);
    for (const GoldenCase& c : cases) {
      const Outcome golden{.frame = file(folder + c.name + ".lcn")};
      const Array y = decoded(c.input, golden);
      EXPECT_EQ(~crc32c(0xFFFFFFFFU, y.data(), y.size_bytes()), expected.at(c.name))
          << c.name << " on " << slice::name_of(target);
    }
  }
}

}  // namespace
}  // namespace laconic::test
