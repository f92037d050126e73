// Damaged and hostile frames: an error, or a valid frame of other values; never a crash, and the same answer on every
// target. Runs under the sanitizers in CI.
#include <gtest/gtest.h>

#include "codec/slice_cases.h"
#include "support/patched_crc.h"
#include "support/sanitized.h"

namespace laconic::test::frame_damage_test {
namespace {

std::vector<Outcome> samples() {
  std::vector<Outcome> f;
  for (const DType t : all_dtypes)
    for (const Kind kind : {Kind::smooth, Kind::mixed, Kind::fill_runs, Kind::nan_and_infinity, Kind::constant}) {
      const Array x = sample(t, kind, 2500);
      const Grid g = grids_of(t).back();
      f.push_back(encoded(x, g));
      if (!g.lossless() || !is_float(t))
        f.push_back(added(x, f.back(), encoded(sample(t, Kind::sparse_outliers, 2500), g)));
      if (is_float(t)) f.push_back(encoded(x, grids_of(t)[0]));
    }
  return f;
}

/// What decoding, adding to itself and taking the greatest of it and itself give: values and bytes, or error codes.
struct Answer {
  Code decode = Code::ok;
  std::vector<std::uint8_t> values;
  Outcome sum, greatest;
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// Frames that claim huge counts are only checked.
constexpr std::uint64_t most_elements = 100000;

Answer answer_to(const std::vector<std::uint8_t>& bytes) {
  Answer a;
  try {
    const frame::Header h = frame::check(bytes);
    if (h.count > most_elements) return a;
    Array y(h.grid.dtype, h.count);
    frame::decode(bytes, y.view());
    a.values.assign(y.data(), y.data() + y.size_bytes());
    const Outcome f{.frame = bytes};
    a.sum = added(y, f, f);
    a.greatest = extreme_of(Op::max, h.grid, nullptr, {f, f});
  } catch (const Error& e) {
    a.decode = e.code();
  }
  return a;
}

/// Also sums of what no encoder writes: residuals under marks or beyond the count, fill values that lie on the grid.
void expect_same_answer_everywhere(const std::vector<std::uint8_t>& bytes) {
  const auto on = [&](slice::Target target) {
    const OnTarget guard(target);
    return answer_to(bytes);
  };
  const Answer reference = on(slice::Target::scalar);
  ASSERT_TRUE(reference.decode == Code::ok || reference.decode == Code::corrupt);
  for (const auto target : fast_targets()) {
    SCOPED_TRACE(slice::name_of(target));
    ASSERT_EQ(reference, on(target));
  }
}

/// One thread looks at the checksum while it adds, in pieces; several look first.
TEST(FrameDamage, SumsAndExtremesFindIt) {
  const Array x = sample(DType::f32, Kind::noise, 100000);
  const Grid g = grids_of(DType::f32).back();
  const std::vector<std::uint8_t> good = encoded(x, g).frame;
  ASSERT_GT(good.size(), std::size_t{70000});
  std::vector<std::uint8_t> out(frame::sum_capacity(x.dtype, x.count));
  const auto code_of = [&](auto add) {
    try {
      add();
      return Code::ok;
    } catch (const Error& e) {
      return e.code();
    }
  };
  for (const int threads : {1, 2}) {
    EXPECT_EQ(code_of([&] { frame::add(good, good, out, threads); }), Code::ok);
    EXPECT_EQ(code_of([&] { frame::encode_add(x.view(), good, out, threads); }), Code::ok);
    for (std::size_t at = 12; at < good.size(); at += at >= 200 ? 4999 : sanitized ? 7 : 1) {
      std::vector<std::uint8_t> bad = good;
      bad[at] ^= 0x10;
      EXPECT_EQ(code_of([&] { frame::add(bad, good, out, threads); }), Code::corrupt) << at;
      EXPECT_EQ(code_of([&] { frame::add(good, bad, out, threads); }), Code::corrupt) << at;
      EXPECT_EQ(code_of([&] { frame::encode_add(x.view(), bad, out, threads); }), Code::corrupt) << at;
      const std::array<frame::Bytes, 3> terms = {good, good, bad};
      EXPECT_EQ(code_of([&] { frame::sum(x.view(), terms, out, threads); }), Code::corrupt) << at;
      EXPECT_EQ(code_of([&] { frame::extreme(Op::min, g, x.view(), terms, out, threads); }), Code::corrupt) << at;
    }
  }
}

TEST(FrameDamage, EveryTruncationIsFound) {
  for (const Outcome& f : samples()) {
    const std::size_t n = f.frame.size();
    for (std::size_t cut = 0; cut < n; cut += cut < 64 || cut + 200 > n ? 1 : 61) {
      const std::vector<std::uint8_t> part(f.frame.begin(), f.frame.begin() + static_cast<std::ptrdiff_t>(cut));
      ASSERT_EQ(answer_to(part).decode, Code::corrupt) << cut << " of " << n;
    }
  }
}

TEST(FrameDamage, TruncationWithARightChecksumIsFoundToo) {
  for (const Outcome& f : samples()) {
    const std::size_t n = f.frame.size();
    for (std::size_t cut = frame::header_bytes; cut < n; cut += cut < 64 || cut + 100 > n ? 1 : 307) {
      std::vector<std::uint8_t> part(f.frame.begin(), f.frame.begin() + static_cast<std::ptrdiff_t>(cut));
      const std::uint64_t claimed = cut;
      std::memcpy(part.data() + 24, &claimed, 8);
      patch_checksum(part.data(), part.size());
      ASSERT_EQ(answer_to(part).decode, Code::corrupt) << cut << " of " << n;
    }
  }
}

TEST(FrameDamage, AnyFlippedBitIsFound) {
  Random random(11);
  for (const Outcome& f : samples())
    for (int k = 0; k < 40; ++k) {
      std::vector<std::uint8_t> bytes = f.frame;
      bytes[random.below(bytes.size())] ^= static_cast<std::uint8_t>(1U << random.below(8));
      ASSERT_EQ(answer_to(bytes).decode, Code::corrupt);
    }
}

TEST(FrameDamage, BehindARightChecksumEveryTargetGivesTheSameAnswer) {
  Random random(12);
  for (const Outcome& f : samples())
    for (int k = 0; k < (sanitized ? 20 : 60); ++k) {
      std::vector<std::uint8_t> bytes = f.frame;
      const std::size_t flips = 1 + random.below(3);
      for (std::size_t j = 0; j < flips; ++j) {
        // Half of them where it hurts most: header, table, the chunks' heads.
        const std::size_t place =
            random.below(2) == 0 ? random.below(std::min<std::size_t>(bytes.size(), 130)) : random.below(bytes.size());
        bytes[place] ^= static_cast<std::uint8_t>(1 + random.below(255));
      }
      patch_checksum(bytes.data(), bytes.size());
      expect_same_answer_everywhere(bytes);
      if (HasFatalFailure()) return;
    }
}

// Kernels take subnormal elements for 0, which a smaller bound would not allow: with any other, a frame that elements
// are added to has the same bytes on every target.
TEST(FrameDamage, GridsThatKernelsCannotHoldAreRefused) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    const Array x = sample(t, Kind::mixed, 2500);
    const Outcome good = encoded(x, make_grid(t, 1e-2, infinite));
    const double least = t == DType::f64 ? 0x1p-901 : 0x1p-111, most = t == DType::f64 ? 0x1p900 : 0x1p120;
    const auto code_with = [&](std::size_t at, double v) {
      Outcome f = good;
      std::memcpy(&f.frame[at], &v, sizeof v);
      patch_checksum(f.frame.data(), f.frame.size());
      Outcome sums[2];
      for (int i = 0; i < 2; ++i) {
        const OnTarget guard(i == 0 ? slice::Target::scalar : fast_targets().back());
        sums[i] = encode_added(x, f);
      }
      EXPECT_EQ(sums[0], sums[1]) << v << " at " << at;
      return sums[0].code;
    };
    constexpr std::size_t step = 32, bound = 40;
    for (const std::size_t at : {step, bound}) {
      SCOPED_TRACE(std::string(name_of(t)) + (at == step ? ", step" : ", bound"));
      EXPECT_EQ(code_with(at, least), Code::ok);
      for (const double v : {least / 2, 4e-287 * least, 0.0, -1.0, infinite, std::nan("")}) {
        EXPECT_EQ(code_with(at, v), Code::corrupt) << v;
      }
    }
    EXPECT_EQ(code_with(step, most), Code::ok);
    EXPECT_EQ(code_with(step, 2 * most), Code::corrupt);
    EXPECT_EQ(code_with(bound, 2 * most), Code::ok);
  }
}

/// Chunk heads made of random words: kinds, predictors, shapes of codes that no encoder writes.
TEST(FrameDamage, RandomChunksGiveTheSameAnswerOnEveryTarget) {
  Random random(13);
  for (int k = 0; k < 3000; ++k) {
    const DType t = all_dtypes[random.below(all_dtypes.size())];
    const std::vector<Grid> grids = grids_of(t);
    const Grid g = grids[random.below(grids.size())];
    Outcome f = encoded(sample(t, Kind::constant, 2048), g);
    const std::size_t words = 1 + random.below(60);
    f.frame.resize(frame::header_bytes + 4);
    const auto units = static_cast<std::uint32_t>(words);
    std::memcpy(f.frame.data() + frame::header_bytes, &units, 4);
    for (std::size_t i = 0; i < 4 * words; ++i) {
      // Few bits: otherwise nearly everything ends at the first check.
      const std::uint64_t bits = random.bits() & random.bits();
      f.frame.push_back(static_cast<std::uint8_t>(i < 40 || random.below(4) == 0 ? bits & random.bits() : 0));
    }
    const std::uint64_t size = f.frame.size();
    std::memcpy(f.frame.data() + 24, &size, 8);
    if (random.below(2) == 0 && (!g.lossless() || !is_float(t))) f.frame[8] = 2;
    patch_checksum(f.frame.data(), f.frame.size());
    expect_same_answer_everywhere(f.frame);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace laconic::test::frame_damage_test
