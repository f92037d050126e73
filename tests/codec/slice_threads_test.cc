// Bytes and values do not depend on the number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "codec/slice/batches.h"
#include "codec/slice/layout.h"
#include "codec/slice/slice.h"
#include "codec/slice_cases.h"
#include "frame/layout.h"
#include "support/sanitized.h"

namespace laconic::test::slice_threads_test {
namespace {

TEST(SliceThreads, GiveTheSameBytes) {
  for (const DType t : {DType::f32, DType::f64, DType::bf16, DType::i32})
    for (const Kind kind : {Kind::smooth, Kind::mixed, Kind::random_bits})
      for (const std::size_t count : {std::size_t{0}, std::size_t{3000}, std::size_t{390 * 2048 + 5}}) {
        if (sanitized && (t == DType::f64 || t == DType::bf16)) continue;
        const Grid g = grids_of(t).back();
        SCOPED_TRACE(describe(t, g, kind, count));
        const Array x = sample(t, kind, count);
        const Outcome a = encoded(x, g);
        const Outcome sum = added(x, a, a);
        ASSERT_EQ(sum.code, Code::ok);
        const Outcome fused = encode_added(x, sum);
        const Outcome greatest = extreme_of(Op::max, g, &x, {a});
        const Array y = decoded(x, a);
        const Array total = decoded(x, sum);
        for (const int threads : {2, 3, 5}) {
          if (sanitized && threads != 3) continue;
          SCOPED_TRACE(threads);
          EXPECT_EQ(a, encoded(x, g, threads));
          EXPECT_EQ(sum, added(x, a, a, threads));
          EXPECT_EQ(fused, encode_added(x, sum, threads));
          EXPECT_EQ(greatest, extreme_of(Op::max, g, &x, {a}, threads));
          EXPECT_TRUE(y == decoded(x, a, threads));
          EXPECT_TRUE(encode_decoded(x, g, threads == 2, threads) == std::pair(a, y));
          EXPECT_TRUE(total == decoded(x, sum, threads));
        }
      }
}

// Long enough that threads have many batches, and look at checksums together.
TEST(SliceThreads, GiveTheSameBytesOfMuch) {
  for (const Kind kind : {Kind::smooth, Kind::mixed, Kind::random_bits}) {
    if (sanitized && kind != Kind::mixed) continue;
    constexpr std::size_t count = (std::size_t{3} << 20) + 77;
    const Grid g = grids_of(DType::f32).back();
    SCOPED_TRACE(describe(DType::f32, g, kind, count));
    const Array x = sample(DType::f32, kind, count);
    const Outcome a = encoded(x, g);
    const Outcome sum = added(x, a, a);
    for (const int threads : {2, 3}) {
      if (sanitized && threads != 3) continue;
      EXPECT_TRUE(a == encoded(x, g, threads));
      EXPECT_TRUE(sum == added(x, a, a, threads));
      EXPECT_TRUE(decoded(x, a) == decoded(x, a, threads));
      EXPECT_TRUE(encode_decoded(x, g, false, threads) == std::pair(a, decoded(x, a)));  // past the caches
    }
  }
}

/// Runs of chunks that are done at once, of such that take long, and of such that are large.
Array uneven(std::size_t count) {
  const Array calm = sample(DType::f32, Kind::constant, count);
  const Array smooth = sample(DType::f32, Kind::smooth, count);
  const Array noise = sample(DType::f32, Kind::random_bits, count);
  Array x = calm;
  for (std::size_t at = 0, run = 0; at < count; ++run) {
    const std::size_t n = std::min((1 + run * 7 % 60) * slice::chunk_values, count - at);
    const Array& from = run % 3 == 0 ? calm : run % 3 == 1 ? smooth : noise;
    std::memcpy(x.data() + 4 * at, from.data() + 4 * at, 4 * n);
    at += n;
  }
  return x;
}

TEST(SliceThreads, WaitForEachOther) {
  const Array x = uneven((std::size_t{3} << 20) + 77);
  const Grid g = grids_of(DType::f32).back();
  const Outcome a = encoded(x, g);
  const Outcome sum = added(x, a, a);
  const Outcome fused = encode_added(x, a);
  for (const int threads : {2, 3, 8}) {
    if (sanitized && threads != 3) continue;
    SCOPED_TRACE(threads);
    EXPECT_TRUE(a == encoded(x, g, threads));
    EXPECT_TRUE(sum == added(x, a, a, threads));
    EXPECT_TRUE(fused == encode_added(x, a, threads));
  }
}

/// What is said of so much room, or nothing.
template <class Write>
std::string complaint(std::size_t room, Write write) {
  std::vector<std::uint8_t> out(room);
  try {
    write(out);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(SliceThreads, NeedNoMoreRoomThanOne) {
  const Array x = uneven(300 * slice::chunk_values + 5);
  const Grid g = grids_of(DType::f32).back();
  const Outcome a = encoded(x, g);
  const std::size_t sum = added(x, a, a).frame.size();
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    const auto encode = [&](auto& out) { frame::encode(x.view(), g, out, threads); };
    const auto add = [&](auto& out) { frame::add(a.frame, a.frame, out, threads); };
    EXPECT_EQ(complaint(a.frame.size(), encode), "");
    EXPECT_EQ(complaint(sum, add), "");
    EXPECT_NE(complaint(a.frame.size() - 1, encode).find("too small for chunk 300"), std::string::npos);
    EXPECT_NE(complaint(sum - 1, add).find("too small for chunk 300"), std::string::npos);
    EXPECT_NE(complaint(sum / 2, add).find("too small for chunk"), std::string::npos);
    EXPECT_NE(complaint(700, add).find("too small for chunk"), std::string::npos);
  }
}

// A thread that finds damage does not leave the others waiting for its batch.
TEST(SliceThreads, EndWhereOneFails) {
  const Array x = uneven((std::size_t{1} << 20) + 77);
  const Outcome a = encoded(x, grids_of(DType::f32).back());
  const std::size_t chunks = slice::chunks_of(x.count);
  std::vector<std::size_t> begin = {frame::header_bytes + slice::table_bytes(x.count)};
  for (std::size_t c = 0; c < chunks; ++c)
    begin.push_back(begin[c] +
                    4 * std::size_t{slice::load<std::uint16_t>(a.frame.data() + frame::header_bytes + 2 * c)});
  for (std::size_t c = 0; c < chunks; c += 37) {
    Outcome bad = a;
    std::memset(bad.frame.data() + begin[c], 0xFF, begin[c + 1] - begin[c]);
    for (const int threads : {2, 3}) EXPECT_EQ(added(x, a, bad, threads).code, Code::corrupt) << c;
  }
}

/// Does it when the thread ends.
struct AtEnd {
  std::function<void()> work;
  ~AtEnd() { work(); }
};

// Programs make calls in the destructors of what their threads have, after those of what Laconic has there.
TEST(SliceThreads, SumInAThreadThatEnds) {
  const Array x = sample(DType::f32, Kind::mixed, 20001);
  const Outcome a = encoded(x, grids_of(DType::f32).back());
  const Outcome sum = added(x, a, a);
  std::vector<slice::Target> targets = fast_targets();
  targets.push_back(slice::Target::scalar);
  for (const slice::Target t : targets) {
    SCOPED_TRACE(slice::name_of(t));
    const OnTarget guard(t);
    std::thread([&] {
      thread_local AtEnd last;  // made before what Laconic has, so destroyed behind it
      last.work = [&] { EXPECT_TRUE(sum == added(x, a, a)); };
      EXPECT_TRUE(sum == added(x, a, a));
    }).join();
  }
}

TEST(SliceBatches, BeginWhereThoseBeforeEnd) {
  slice::Batches batches(3);
  for (std::size_t b = 0; b < 3; ++b) EXPECT_EQ(batches.take(), b);
  EXPECT_EQ(batches.take(), std::nullopt);
  EXPECT_TRUE(batches.wait_for(0));
  batches.set_size(1, 20);
  EXPECT_FALSE(batches.is_known(1));
  batches.set_size(0, 5);
  EXPECT_TRUE(batches.is_known(2));
  EXPECT_EQ(batches.begin_of(0), 0U);
  EXPECT_EQ(batches.begin_of(1), 5U);
  EXPECT_EQ(batches.begin_of(2), 25U);
  batches.set_size(2, 0);
  EXPECT_EQ(batches.total(), 25U);
}

TEST(SliceBatches, NobodyWaitsForWhatHasFailed) {
  slice::Batches batches(3);
  EXPECT_EQ(batches.take(), 0U);
  EXPECT_EQ(batches.take(), 1U);
  std::jthread other([&] { batches.fail(); });
  EXPECT_FALSE(batches.wait_for(1));
  EXPECT_EQ(batches.take(), std::nullopt);
}

}  // namespace
}  // namespace laconic::test::slice_threads_test
