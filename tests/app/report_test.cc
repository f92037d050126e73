// Figures and text of the command's reports, sizes and rates as users write them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "arguments.h"
#include "bench/timing.h"
#include "exit_code.h"
#include "io/image.h"
#include "report/quality.h"
#include "report/streams.h"
#include "report/table.h"

namespace laconic::app::report_test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T>
ConstArray view(const std::vector<T>& v, DType t) {
  return {v.data(), v.size(), t};
}

TEST(AppQuality, ErrorsOfFiniteValues) {
  const std::vector<float> a{0, 1, 2, 4};
  const std::vector<float> b{0, 1.5F, 2, 3.75F};
  Quality q;
  compare(q, view(a, DType::f32), view(b, DType::f32), 0.25, std::nullopt);
  EXPECT_DOUBLE_EQ(q.max_error, 0.5);
  EXPECT_EQ(q.violations, 1U);
  EXPECT_EQ(q.compared, 4U);
  EXPECT_DOUBLE_EQ(q.range(), 4);
  EXPECT_DOUBLE_EQ(q.rmse(), std::sqrt((0.25 + 0.0625) / 4));
  EXPECT_DOUBLE_EQ(q.nrmse(), q.rmse() / 4);
  EXPECT_NEAR(q.psnr(), -20 * std::log10(q.nrmse()), 1e-12);
}

TEST(AppQuality, SpecialValuesMustComeBack) {
  const std::vector<float> a{nan, infinity, -infinity, 1e20F, 1};
  Quality exact;
  compare(exact, view(a, DType::f32), view(a, DType::f32), 0.5, 1e20F);
  EXPECT_EQ(exact.violations, 0U);
  EXPECT_EQ(exact.compared, 1U);
  const std::vector<float> b{0, nan, infinity, 2e20F, nan};
  Quality damaged;
  compare(damaged, view(a, DType::f32), view(b, DType::f32), 0.5, 1e20F);
  EXPECT_EQ(damaged.violations, 5U);
}

TEST(AppQuality, LosslessMeansTheSameBits) {
  const std::vector<float> a{0.0F, 1};
  const std::vector<float> b{-0.0F, 1};
  Quality q;
  compare(q, view(a, DType::f32), view(b, DType::f32), 0, std::nullopt);
  EXPECT_EQ(q.violations, 1U);
}

TEST(AppQuality, PiecesAddUp) {
  const std::vector<double> a{-3, 1, 7, 2};
  const std::vector<double> b{-3.5, 1, 7.25, 2};
  Quality whole;
  compare(whole, view(a, DType::f64), view(b, DType::f64), 1, std::nullopt);
  Quality pieces;
  for (std::size_t i = 0; i < a.size(); ++i)
    compare(pieces, {a.data() + i, 1, DType::f64}, {b.data() + i, 1, DType::f64}, 1, std::nullopt);
  EXPECT_DOUBLE_EQ(pieces.sum_squares, whole.sum_squares);
  EXPECT_DOUBLE_EQ(pieces.range(), 10);
  EXPECT_DOUBLE_EQ(whole.range(), 10);
}

TEST(AppQuality, SquaresOfErrorsMayBeBeyondADouble) {
  for (const double scale : {1e300, 1.0, 1e-300}) {
    const std::vector<double> a{0, 4 * scale};
    const std::vector<double> b{scale, 4 * scale};
    Quality q;
    compare(q, view(a, DType::f64), view(b, DType::f64), scale, std::nullopt);
    EXPECT_DOUBLE_EQ(q.nrmse(), std::sqrt(0.5) / 4) << scale;
    EXPECT_NEAR(q.psnr(), 15.05, 0.01) << scale;
  }
}

TEST(AppQuality, RangeLeavesOutWhatMarksMissingData) {
  const std::vector<float> a{3, nan, 1e30F, -999, 8, -infinity};
  const Range plain = scan_without(view(a, DType::f32), std::nullopt);
  EXPECT_DOUBLE_EQ(plain.max, 1e30F);
  const Range clean = scan_without(view(a, DType::f32), -999);
  EXPECT_DOUBLE_EQ(clean.min, 3);
  EXPECT_DOUBLE_EQ(clean.max, 1e30F);
}

TEST(AppQuality, HalvesAreReadAsNumbers) {
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x0001};
  EXPECT_DOUBLE_EQ(value_at(view(halves, DType::f16), 0), 1);
  EXPECT_DOUBLE_EQ(value_at(view(halves, DType::f16), 1), -2);
  EXPECT_DOUBLE_EQ(value_at(view(halves, DType::f16), 2), std::ldexp(1, -24));
  EXPECT_DOUBLE_EQ(value_at(view(halves, DType::bf16), 0), 0.0078125);
}

TEST(AppTable, ColumnsAlign) {
  Table t({"name", "x"});
  t.row({"a", "1"});
  t.rule();
  t.row({"longer", "12345"});
  EXPECT_EQ(t.text(), "name        x\n-------------\na           1\n-------------\nlonger  12345\n");
}

TEST(AppTable, NumbersForPeople) {
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(3.84e6), "3.84 MB");
  EXPECT_EQ(human_bytes(999600), "1 MB");
  EXPECT_EQ(human_time(0.0009996), "1 ms");
  EXPECT_EQ(human_time(1.5), "1.5 s");
  EXPECT_EQ(human_time(0.0123), "12.3 ms");
  EXPECT_EQ(human_time(4.5e-6), "4.5 us");
}

TEST(AppArguments, Sizes) {
  EXPECT_EQ(parse_size("64MiB"), std::size_t{64} << 20);
  EXPECT_EQ(parse_size("256k"), std::size_t{256} << 10);
  EXPECT_EQ(parse_size("1000"), 1000U);
  for (const char* bad : {"", "0", "MiB", "-1", "5x", "5MiBs", "99999999999GiB"})
    EXPECT_THROW(parse_size(bad), Failure) << bad;
}

TEST(AppTiming, MedianAndGeometricMean) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2);
  EXPECT_DOUBLE_EQ(median({}), 0);
  EXPECT_NEAR(geometric_mean({1, 100}), 10, 1e-12);
  EXPECT_NEAR(geometric_mean({0, 5}), 5, 1e-12);
}

TEST(AppTiming, EveryTaskRunsOnceMoreThanItIsMeasured) {
  std::array<int, 2> runs{};
  const auto seconds = time_interleaved({[&] { ++runs[0]; }, [&] { ++runs[1]; }}, 3, 4);
  EXPECT_EQ(seconds.size(), 2U);
  EXPECT_EQ(runs[0], 16);
  EXPECT_EQ(runs[1], 16);
}

TEST(AppImage, ColoursAreMonotoneAndClamped) {
  const auto lightness = [](Colour c) { return 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b; };
  double before = -1;
  for (int i = 0; i <= 50; ++i) {
    const double now = lightness(sequential_colour(i / 50.0));
    EXPECT_GT(now, before) << i;
    before = now;
  }
  EXPECT_EQ(sequential_colour(-5).r, sequential_colour(0).r);
  EXPECT_EQ(diverging_colour(7).r, diverging_colour(1).r);
  EXPECT_GT(diverging_colour(0).g, 240);
  EXPECT_EQ(sequential_colour(std::nan("")).r, sequential_colour(std::nan("")).g);
}

TEST(AppStreams, ControlCharactersAreShownAndNotObeyed) {
  EXPECT_EQ(printable("a b/\u00e9\xff.f32"), "a b/\u00e9\xff.f32");
  EXPECT_EQ(printable("\x1b[31m\r\t\n\x7f"), "\\x1b[31m\\x0d\\x09\\n\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\xc2\\x9b");
  Table table({"name", "size"});
  table.row({"a\nb", "1"});
  EXPECT_EQ(table.text(), "name  size\n----------\na\\nb     1\n");
}

}  // namespace
}  // namespace laconic::app::report_test
