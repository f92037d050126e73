// Dealing images to ranks, the exact answer, mosaics, and a whole stack over threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "exit_code.h"
#include "report/quality.h"
#include "stack/measure.h"
#include "stack/report.h"
#include "transport/threads.h"

namespace laconic::app::stack_test {
namespace {

/// `images` images of rows x cols; value = 100 * image + index.
ImageSet numbered(std::size_t images, std::size_t rows, std::size_t cols, DType dtype) {
  ImageSet set;
  set.name = "numbered";
  set.dtype = dtype;
  set.images = images;
  set.rows = rows;
  set.cols = cols;
  set.bytes.resize(images * rows * cols * size_of(dtype));
  for (std::size_t i = 0; i < images * rows * cols; ++i) {
    const double v = 100.0 * static_cast<double>(i / (rows * cols)) + static_cast<double>(i % (rows * cols));
    if (dtype == DType::f64) {
      std::memcpy(set.bytes.data() + i * 8, &v, 8);
    } else {
      const auto f = static_cast<float>(v);
      std::memcpy(set.bytes.data() + i * 4, &f, 4);
    }
  }
  return set;
}

TEST(AppStack, SharesAddUpToTheStack) {
  const ImageSet set = numbered(7, 2, 3, DType::f64);
  for (const int ranks : {1, 2, 3, 7}) {
    const auto sum = exact_stack(set, ranks, Op::sum);
    const auto average = exact_stack(set, ranks, Op::average);
    for (std::size_t k = 0; k < sum.size(); ++k) {
      const double index = static_cast<double>(k);
      EXPECT_NEAR(static_cast<double>(sum[k].value()), 2100 + 7 * index, 1e-9);
      EXPECT_NEAR(static_cast<double>(average[k].value()), 300 + index, 1e-9)
          << "also when ranks hold different numbers of images";
    }
  }
}

TEST(AppStack, TooManyRanksAreRefused) {
  const ImageSet set = numbered(3, 2, 3, DType::f32);
  EXPECT_THROW(share_of_rank(set, 0, 4, Op::sum), Failure);
}

TEST(AppStack, MosaicRepeatsTheImage) {
  const ImageSet set = numbered(1, 2, 3, DType::f32);
  const Mosaic mosaic = choose_mosaic(set, 7 * 24);
  EXPECT_EQ(mosaic.across, 2U);
  EXPECT_EQ(mosaic.down, 3U);
  const auto bytes = lay_mosaic(set, set.bytes, mosaic);
  ASSERT_EQ(bytes.size(), 6 * set.bytes.size());
  const ConstArray laid{bytes.data(), bytes.size() / 4, DType::f32};
  for (std::size_t r = 0; r < 6; ++r)
    for (std::size_t c = 0; c < 6; ++c) EXPECT_EQ(value_at(laid, r * 6 + c), static_cast<double>(r % 2 * 3 + c % 3));
  const Mosaic one = choose_mosaic(set, 1);
  EXPECT_EQ(one.across * one.down, 1U);
}

TEST(AppStack, PlainRingGivesTheSum) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const std::size_t count : {0U, 1U, 4U, 17U}) {
      run_ranks(ranks, [&](Transport& t) {
        std::vector<float> mine(count);
        std::vector<float> sum(count);
        for (std::size_t i = 0; i < count; ++i) mine[i] = static_cast<float>(t.rank() + 1) * static_cast<float>(i);
        ring_baseline(t).run({mine.data(), count, DType::f32}, {sum.data(), count, DType::f32}, Op::sum);
        const auto factor = static_cast<float>(ranks * (ranks + 1) / 2);
        for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(sum[i], factor * static_cast<float>(i));
      });
    }
  }
}

TEST(AppStack, LinkRates) {
  EXPECT_DOUBLE_EQ(parse_link_rate("1gbit"), 1.25e8);
  EXPECT_DOUBLE_EQ(parse_link_rate("2500mbit"), 3.125e8);
  EXPECT_DOUBLE_EQ(parse_link_rate(""), 0);
  EXPECT_THROW(parse_link_rate("fast"), Failure);
  EXPECT_THROW(parse_link_rate("-1gbit"), Failure);
}

TEST(AppStack, WholeExperimentKeepsItsPromise) {
  StackOptions options;
  options.bound = "1e-3rel";
  options.size = "1";
  options.repetitions = 2;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const ImageSet set = numbered(5, 40, 61, dtype);
    run_ranks(3, [&](Transport& t) {
      Communicator comm(t);
      const StackResult r = measure_stack(options, set, comm, ring_baseline(t));
      EXPECT_TRUE(r.laconic.identical);
      EXPECT_GT(r.ratio(), 1);
      EXPECT_GT(r.payload_bytes, 0);
      if (t.rank() != 0) return;
      EXPECT_GT(r.absolute_bound, 0);
      EXPECT_EQ(r.laconic.quality.compared, 40U * 61U);
      EXPECT_EQ(r.laconic.quality.violations, 0U);
      EXPECT_EQ(exit_code_for(r), 0);
      EXPECT_EQ(r.exact.size(), 40U * 61U);
      EXPECT_FALSE(to_text(r).empty());
      EXPECT_EQ(to_json(r)["ranks"], 3);
    });
  }
}

TEST(AppStack, ASumBeyondTheTypeIsInfinite) {
  StackOptions options;
  options.size = "1";
  options.repetitions = 1;
  ImageSet set = numbered(2, 8, 9, DType::f32);
  for (std::size_t i = 0; i < set.bytes.size(); i += 8) {
    const float huge = 3e38F;
    std::memcpy(set.bytes.data() + i, &huge, 4);
  }
  run_ranks(2, [&](Transport& t) {
    Communicator comm(t);
    const StackResult r = measure_stack(options, set, comm, ring_baseline(t));
    if (t.rank() != 0) return;
    EXPECT_EQ(r.laconic.quality.compared, 36U);
    EXPECT_EQ(exit_code_for(r), 0);
  });
}

/// Sums just below the middle between two doubles, which sums in long double are taken beyond; and of any magnitudes.
TEST(AppStack, ALosslessSumIsRoundedCorrectly) {
  StackOptions options;
  options.size = "1";
  options.repetitions = 1;
  options.bound = "lossless";
  for (const int ranks : {5, 3}) {
    ImageSet set = numbered(5, 64, 65, DType::f64);
    const std::size_t image = set.bytes.size() / 5;
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < set.bytes.size(); i += 8) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const double v = std::ldexp(static_cast<double>(state >> 11), -53 - static_cast<int>(state % 23));
      std::memcpy(set.bytes.data() + i, &v, 8);
    }
    const double below_the_middle[] = {1, 0x1p-53, 1.01 * 0x1p-64, 1.01 * 0x1p-64, -2.03 * 0x1p-64};
    for (std::size_t i = 0; i < 5; ++i) std::memcpy(set.bytes.data() + i * image, &below_the_middle[i], 8);
    for (const char* op : {"sum", "average"}) {
      options.op = op;
      run_ranks(ranks, [&](Transport& t) {
        Communicator comm(t);
        const StackResult r = measure_stack(options, set, comm, ring_baseline(t));
        if (t.rank() != 0) return;
        EXPECT_EQ(r.laconic.quality.violations, 0U) << op << " of " << ranks;
        EXPECT_EQ(exit_code_for(r), 0);
      });
    }
  }
}

TEST(AppStack, BrokenPromisesAreReported) {
  StackResult r;
  r.laconic.identical = true;
  EXPECT_EQ(exit_code_for(r), 0);
  r.laconic.identical = false;
  EXPECT_EQ(exit_code_for(r), static_cast<int>(Exit::bound_violated));
  r.laconic.identical = true;
  r.laconic.quality.violations = 1;
  EXPECT_EQ(exit_code_for(r), static_cast<int>(Exit::bound_violated));
}

}  // namespace
}  // namespace laconic::app::stack_test
