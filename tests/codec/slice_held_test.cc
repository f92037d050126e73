// Sums of chunks whose marked values do not repeat the one before, in one place: no encoder writes them, every set of
// kernels must hold the sum's values then. Wherever that place is in a run of marks, a block or a chunk.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "codec/slice/kernel_sets.h"
#include "codec/slice/layout.h"
#include "codec/slice_cases.h"
#include "support/sample_data.h"

namespace laconic::test::slice_held_test {
namespace {

using slice::Params;
using slice::Predictor;

constexpr std::size_t values = 2048;
constexpr std::size_t blocks = 32;
using Integers = std::vector<std::int32_t>;
using Marks = std::array<std::uint64_t, blocks>;

bool is_marked(const Marks& marks, std::size_t i) { return (marks[i / 64] >> (i % 64) & 1) != 0; }

/// A run at the chunk's begin, runs that begin and end at blocks' ends and next to them, single marks, a whole block.
Marks some_land() {
  Marks marks{};
  for (const auto& [from, to] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 70}, {127, 128}, {128, 130}, {191, 260}, {320, 384}, {500, 501}, {511, 513}, {640, 641}, {1000, 1300}})
    for (std::size_t i = from; i < to; ++i) marks[i / 64] |= std::uint64_t{1} << (i % 64);
  return marks;
}

class Bytes {
 public:
  template <class T>
  void put(T v) {
    bytes_.resize(bytes_.size() + sizeof v);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof v, &v, sizeof v);
  }
  /// With what kernels may read behind it.
  std::vector<std::uint8_t> finish(std::size_t& size) {
    size = slice::pad4(bytes_.size());
    bytes_.resize(size + slice::read_slack);
    return std::move(bytes_);
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

std::int32_t residual(const Integers& q, Predictor predictor, std::size_t i) {
  const auto at = [&](std::size_t back) { return i < back ? q[0] : q[i - back]; };
  if (predictor == Predictor::none) return q[i];
  return predictor == Predictor::first ? at(0) - at(1) : at(0) - 2 * at(1) + at(2);
}

/// A chunk of f32 with these integers, and one fill value where there are marks. All planes of residuals are dense.
std::vector<std::uint8_t> chunk_of(const Integers& q, const Marks& marks, Predictor predictor, std::size_t& size) {
  std::array<std::array<std::uint64_t, 32>, blocks> planes{};
  std::array<std::uint8_t, blocks> width{};
  std::uint32_t land = 0;
  for (std::size_t i = 0; i < values; ++i) {
    const std::int32_t r = residual(q, predictor, i);
    const std::uint32_t z = static_cast<std::uint32_t>(r) << 1 ^ static_cast<std::uint32_t>(r >> 31);
    const auto w = static_cast<std::uint8_t>(std::bit_width(z));
    for (std::size_t k = 0; k < w; ++k) planes[i / 64][k] |= std::uint64_t{z >> k & 1} << (i % 64);
    width[i / 64] = std::max(width[i / 64], w);
  }
  for (std::size_t b = 0; b < blocks; ++b) land |= static_cast<std::uint32_t>(marks[b] != 0) << b;
  Bytes out;
  out.put(slice::Word{.predictor = predictor,
                      .has_fill = true,
                      .index_planes = slice::Word::plain_codes,
                      .base = predictor == Predictor::none ? 0 : q[0]}
              .pack());
  out.put(land);
  out.put(1e30F);
  for (const std::uint8_t w : width) out.put(w);
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t k = 0; k < width[b]; ++k) out.put(planes[b][k]);
  const auto each_byte_of_marks = [&](auto see) {
    for (std::size_t b = 0; b < blocks; ++b) {
      std::array<std::uint8_t, 8> byte;
      const std::uint64_t plane = slice::mark_plane(marks[b]);
      std::memcpy(byte.data(), &plane, sizeof plane);
      if (marks[b] != 0) see(byte);
    }
  };
  each_byte_of_marks([&](const auto& byte) {
    std::uint8_t mask = 0;
    for (std::size_t g = 0; g < 8; ++g) mask = static_cast<std::uint8_t>(mask | (byte[g] != 0 ? 1U << g : 0U));
    out.put(mask);
  });
  each_byte_of_marks([&](const auto& byte) {
    for (const std::uint8_t v : byte)
      if (v != 0) out.put(v);
  });
  return out.finish(size);
}

class SliceHeld : public testing::TestWithParam<Predictor> {
 protected:
  /// A walk that marked values take no part in.
  static Integers held_walk(const Marks& marks) {
    Random random(7);
    Integers q(values, 40);
    bool begun = false;
    for (std::size_t i = 1; i < values; ++i) {
      q[i] = q[i - 1];
      if (is_marked(marks, i)) continue;
      if (begun) q[i] += static_cast<std::int32_t>(random.below(7)) - 3;
      begun = true;
    }
    return q;
  }

  void expect_sum_as_on_reference(const Integers& q) {
    std::size_t size = 0;
    const std::vector<std::uint8_t> chunk = chunk_of(q, marks_, GetParam(), size);
    const auto add = [&](const slice::Kernels& k) {
      std::vector<std::uint8_t> out(slice::largest_chunk + slice::write_slack);
      const std::size_t n = k.add(two_, one_, {chunk.data(), size, slice::read_slack}, one_,
                                  {plain_.data(), plain_size_, slice::read_slack}, static_cast<int>(values), out.data(),
                                  slice::largest_chunk);
      out.resize(n < slice::chunk_unfused ? n : 0);
      return out;
    };
    const std::vector<std::uint8_t> expected = add(slice::reference_kernels());
    ASSERT_FALSE(expected.empty());
    for (const slice::Target target : fast_targets()) {
      const OnTarget guard(target);
      ASSERT_EQ(add(slice::kernels()), expected) << slice::name_of(target);
    }
  }

  const Marks marks_ = some_land();
  std::size_t plain_size_ = 0;
  const std::vector<std::uint8_t> plain_ = chunk_of(Integers(values, 0), marks_, GetParam(), plain_size_);
  const Params one_ = slice::params_for(make_grid(DType::f32, 1e-3, 1.3), 1);
  const Params two_ = slice::params_for(make_grid(DType::f32, 1e-3, 1.3), 2);
};

TEST_P(SliceHeld, ValuesUnderMarks) { expect_sum_as_on_reference(held_walk(marks_)); }

TEST_P(SliceHeld, ValuesThatChangeUnderMarks) {
  const Integers held = held_walk(marks_);
  for (std::size_t i = 1; i < values; ++i) {
    if (!is_marked(marks_, i)) continue;
    for (const int change : {-1, 1, 16, -held[i]}) {
      SCOPED_TRACE("at " + std::to_string(i) + " by " + std::to_string(change));
      Integers q = held;
      for (std::size_t k = i; is_marked(marks_, k); ++k) q[k] += change;
      expect_sum_as_on_reference(q);
      if (HasFatalFailure()) return;
    }
  }
}

/// A line through all marks: with `second`, no residual behind its begin tells.
TEST_P(SliceHeld, ValuesThatGoOnUnderMarks) {
  for (const int slope : {-2, 1})
    for (const std::size_t from : {390, 505, 600}) {
      SCOPED_TRACE("from " + std::to_string(from) + " by " + std::to_string(slope));
      Integers q(values, 40);
      for (std::size_t i = from; i < values; ++i) q[i] = q[i - 1] + slope;
      expect_sum_as_on_reference(q);
    }
}

/// With `none`, only the block before tells.
TEST_P(SliceHeld, ValuesThatBecomeZeroWhereABlockBegins) {
  Integers q(values, 0);
  q[190] = q[191] = 5;
  expect_sum_as_on_reference(q);
}

/// The first value behind marks that a chunk begins with is what these hold.
TEST_P(SliceHeld, ValuesThatChangeBehindTheFirstMarks) {
  Integers q = held_walk(marks_);
  std::size_t i = 0;
  while (is_marked(marks_, i)) ++i;
  for (; i < values; ++i) q[i] -= 2;
  expect_sum_as_on_reference(q);
}

std::string name_of_predictor(const testing::TestParamInfo<Predictor>& p) {
  constexpr std::array names{"None", "First", "Second"};
  return names[static_cast<std::size_t>(p.param)];
}
INSTANTIATE_TEST_SUITE_P(Predictors, SliceHeld, testing::Values(Predictor::none, Predictor::first, Predictor::second),
                         name_of_predictor);

}  // namespace
}  // namespace laconic::test::slice_held_test
