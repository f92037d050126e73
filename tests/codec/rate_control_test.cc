#include "codec/rate_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "codec/codec_cases.h"
#include "frame/frame.h"
#include "support/sanitized.h"

namespace laconic::rate_control_test {
namespace {

using namespace test;

struct Kept {
  Outcome outcome;
  frame::Header header{};
  double share = 0;  ///< of the bytes that the ratio leaves to the payload
};

Kept kept(const Codec& codec, const Array& x, double ratio, int threads = 1) {
  Kept k{encoded_by(codec, x, rate_grid(x.dtype, ratio), threads)};
  if (k.outcome.code != Code::ok) return k;
  k.header = frame::check(k.outcome.frame);
  k.share =
      static_cast<double>(k.outcome.frame.size() - frame::header_bytes) * ratio / static_cast<double>(x.size_bytes());
  return k;
}

/// Whether so many values that no grid can say are among them that they alone may be too many bytes.
bool may_be_refused(Kind kind) {
  return kind == Kind::nan_and_infinity || kind == Kind::all_nan || kind == Kind::random_bits || kind == Kind::mixed ||
         kind == Kind::huge || kind == Kind::several_fills || kind == Kind::sparse_outliers ||
         kind == Kind::fill_runs || kind == Kind::denormals;
}

void expect_kept(const Codec& codec, DType t, Kind kind, std::size_t count, double ratio) {
  const std::string what =
      std::string(codec.name()) + " " + std::to_string(ratio) + "x, " + describe(codec, t, {}, kind, count);
  const Array x = sample(t, kind, count);
  const Kept k = kept(codec, x, ratio);
  if (k.outcome.code != Code::ok) {
    EXPECT_EQ(k.outcome.code, Code::unsupported) << what;
    EXPECT_TRUE(may_be_refused(kind)) << what;
    return;
  }
  EXPECT_LE(k.share, 1) << what;
  EXPECT_TRUE(std::isfinite(k.header.grid.bound)) << what;
  Array y(t, count);
  frame::decode(k.outcome.frame, y.view());
  EXPECT_EQ(broken_promise(codec, k.header.grid, x, y), "") << what;
}

class RateControl : public testing::TestWithParam<DType> {};

TEST_P(RateControl, ByEveryCodecThatKeepsBounds) {
  for (const Codec* codec : built_codecs()) {
    if (codec->promise() != Promise::bounded || !codec->takes(GetParam())) continue;
    for (const Kind kind : all_kinds)
      for (const double ratio : {1.5, 6.0}) expect_kept(*codec, GetParam(), kind, sanitized ? 2500 : 5000, ratio);
  }
}

TEST_P(RateControl, UpToTheTypesBits) {
  for (const Codec* codec : built_codecs()) {
    if (codec->promise() != Promise::bounded || !codec->takes(GetParam())) continue;
    for (const Kind kind : {Kind::smooth, Kind::noise, Kind::constant})
      for (const double ratio : {16.0, 8.0 * static_cast<double>(size_of(GetParam()))})
        if (ratio <= 16 || codec->name() == "slice") expect_kept(*codec, GetParam(), kind, 20000, ratio);
  }
}

TEST_P(RateControl, BeginsWithASampleOfMuch) {
  for (const Kind kind : all_kinds) expect_kept(slice_codec(), GetParam(), kind, 270001, 3.0);
}

TEST_P(RateControl, TakesTheFinestGrid) {
  for (const Kind kind : {Kind::smooth, Kind::noise})
    for (const std::size_t count : {20000, 300000})
      for (const double ratio : {2.0, 5.0, 9.0}) {
        const Kept k = kept(slice_codec(), sample(GetParam(), kind, count), ratio);
        ASSERT_EQ(k.outcome.code, Code::ok);
        EXPECT_TRUE(k.header.grid.lossless() || k.share > 0.85)
            << k.share << ", " << ratio << "x of " << count << ", kind " << static_cast<int>(kind);
      }
}

INSTANTIATE_TEST_SUITE_P(Floats, RateControl, testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

/// From a set that every processor has alike: what std::exp2() gives, it need not.
TEST(RateControlOf, BoundsAreSixteenthsOfAnOctave) {
  for (const double ratio : {3.0, 4.5, 7.0}) {
    const double k =
        16 * std::log2(kept(slice_codec(), sample(DType::f32, Kind::noise, 20000), ratio).header.grid.bound);
    EXPECT_NEAR(k, std::round(k), 1e-9);
  }
}

TEST(RateControlOf, ThreadsGiveTheSameBytes) {
  const Array x = sample(DType::f32, Kind::smooth, 1 << 20);
  EXPECT_EQ(kept(slice_codec(), x, 7).outcome.frame, kept(slice_codec(), x, 7, 3).outcome.frame);
}

TEST(RateControlOf, LosesNothingWhereThatIsEnough) {
  const Kept zeros = kept(slice_codec(), sample(DType::f32, Kind::zeros, 100000), 30);
  ASSERT_EQ(zeros.outcome.code, Code::ok);
  EXPECT_TRUE(zeros.header.grid.lossless());
  for (const std::size_t count : {0, 1, 31, 2047}) {  // a chunk has its own bytes
    const Kept few = kept(slice_codec(), sample(DType::f32, Kind::random_bits, count), 30);
    ASSERT_EQ(few.outcome.code, Code::ok) << count;
    EXPECT_TRUE(few.header.grid.lossless()) << count;
  }
}

TEST(RateControlOf, WhatNoBoundCanShortenIsRefused) {
  EXPECT_EQ(kept(slice_codec(), sample(DType::f32, Kind::random_bits, 100000), 30).outcome.code, Code::unsupported);
  EXPECT_EQ(kept(slice_codec(), sample(DType::f64, Kind::all_nan, 3000), 60).outcome.code,
            Code::ok);  // one and the same
}

}  // namespace
}  // namespace laconic::rate_control_test
