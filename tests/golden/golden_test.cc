// Frames of version 1 as they were written when it was frozen: their elements must come back for ever, and what they
// were made of must give the same bytes. NAME.frame; NAME.in: the elements, for frames of one operand; decoded.txt: the
// CRC-32C of the elements that each frame decodes to. A difference is a new version of the format, not new files here.
#include <gtest/gtest.h>
#include <isa-l/crc.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "codec/slice/target.h"
#include "frame/frame.h"

namespace laconic {
namespace {

using Bytes = std::vector<std::uint8_t>;

const std::string folder = "tests/golden/";
constexpr std::size_t least_frames = 50;

Bytes read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, std::uint32_t> decoded() {
  std::map<std::string, std::uint32_t> all;
  std::ifstream file(folder + "decoded.txt");
  std::string name;
  std::uint32_t crc = 0;
  while (file >> name >> std::hex >> crc) all[name] = crc;
  return all;
}

std::uint32_t crc32c(Bytes& b) { return ~crc32_iscsi(b.data(), static_cast<int>(b.size()), 0xFFFFFFFFU); }

/// Runs the check with every target that this machine has.
template <class Check>
void on_every_target(Check check) {
  using slice::Target;
  for (const Target t : {Target::scalar, Target::portable, Target::avx2, Target::avx512, Target::avx512x}) {
    if (!slice::supported(t)) continue;
    SCOPED_TRACE(std::string(slice::name_of(t)));
    slice::force(t);
    check();
  }
  slice::force(slice::best());
}

TEST(Golden, FramesDecodeToWhatTheyAlwaysDid) {
  const auto all = decoded();
  ASSERT_GE(all.size(), least_frames);
  on_every_target([&] {
    for (const auto& [name, crc] : all) {
      SCOPED_TRACE(name);
      const Bytes stream = read(folder + name + ".frame");
      const auto header = frame::check(stream);
      Bytes out(header.count * size_of(header.grid.dtype));
      frame::decode(stream, {out.data(), header.count, header.grid.dtype});
      EXPECT_EQ(crc32c(out), crc);
    }
  });
}

TEST(Golden, ElementsEncodeToTheSameBytes) {
  std::size_t operands = 0;
  on_every_target([&] {
    for (const auto& [name, crc] : decoded()) {
      if (!std::filesystem::exists(folder + name + ".in")) continue;
      SCOPED_TRACE(name);
      const Bytes stream = read(folder + name + ".frame");
      const Bytes in = read(folder + name + ".in");
      const auto header = frame::check(stream);
      Bytes out(frame::capacity(header.grid.dtype, header.count));
      out.resize(frame::encode({in.data(), header.count, header.grid.dtype}, header.grid, out));
      EXPECT_EQ(out, stream);
      ++operands;
    }
  });
  EXPECT_GE(operands, least_frames / 2);
}

}  // namespace
}  // namespace laconic
