// The frame: what its header says, what it refuses, random access.
#include <gtest/gtest.h>

#include "codec/slice_cases.h"
#include "support/patched_crc.h"

namespace laconic::test::frame_test {
namespace {

template <class T>
T at(const Outcome& f, std::size_t offset) {
  T v;
  std::memcpy(&v, f.frame.data() + offset, sizeof v);
  return v;
}

template <class F>
Code code_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()), "");
    return e.code();
  }
  return Code::ok;
}

TEST(Frame, HeaderIsWhatTheFormatSays) {
  const Grid g = make_grid(DType::f64, 1e-3, 100);
  const Array x = sample(DType::f64, Kind::noise, 5000);
  const Outcome f = encoded(x, g);
  EXPECT_EQ(std::memcmp(f.frame.data(), "LCN1", 4), 0);
  EXPECT_EQ(f.frame[4], 1);  // version
  EXPECT_EQ(f.frame[5], 2);  // f64
  EXPECT_EQ(f.frame[6], 1);  // slice
  EXPECT_EQ(f.frame[7], g.qbits);
  EXPECT_EQ(at<std::uint32_t>(f, 8), 1U);
  EXPECT_EQ(at<std::uint32_t>(f, 12), frame_checksum(f.frame.data(), f.frame.size()));
  EXPECT_EQ(at<std::uint64_t>(f, 16), 5000U);
  EXPECT_EQ(at<std::uint64_t>(f, 24), f.frame.size());
  EXPECT_EQ(at<double>(f, 32), g.step);
  EXPECT_EQ(at<double>(f, 40), 1e-3);
}

TEST(Frame, PeekAndCheckTellTheHeader) {
  for (const DType t : all_dtypes)
    for (const Grid& g : grids_of(t)) {
      const Outcome f = encoded(sample(t, Kind::mixed, 3000), g);
      for (const frame::Header& h :
           {frame::peek(frame::Bytes(f.frame).first(frame::header_bytes)), frame::check(f.frame)}) {
        EXPECT_EQ(h.grid.dtype, t);
        EXPECT_EQ(h.grid.step, g.step);
        EXPECT_EQ(h.grid.bound, g.bound);
        EXPECT_EQ(h.grid.qbits, g.qbits);
        EXPECT_EQ(h.count, 3000U);
        EXPECT_EQ(h.operands, 1U);
        EXPECT_EQ(h.chunks(), 2U);
        EXPECT_EQ(h.frame_bytes, f.frame.size());
      }
    }
}

TEST(Frame, SumsCountTheirOperandsAndKeepTheWiderBound) {
  const Array x = sample(DType::f32, Kind::smooth, 100);
  const Grid g = make_grid(DType::f32, 1e-3, 2);
  Grid other = g;
  other.bound *= 2;
  other.qbits += 1;
  const Outcome sum = added(x, encoded(x, g), encoded(x, other));
  const frame::Header h = frame::check(sum.frame);
  EXPECT_EQ(h.operands, 2U);
  EXPECT_EQ(h.grid.bound, other.bound);
  EXPECT_EQ(h.grid.qbits, other.qbits);
  EXPECT_EQ(frame::check(encode_added(x, sum).frame).operands, 3U);
}

TEST(Frame, HoldsNothing) {
  for (const DType t : all_dtypes) {
    const Array none(t, 0);
    const Outcome f = encoded(none, make_grid(t, 0, 1));
    EXPECT_EQ(f.frame.size(), frame::header_bytes);
    EXPECT_EQ(frame::check(f.frame).count, 0U);
    frame::decode(f.frame, {nullptr, 0, t});
  }
}

TEST(Frame, DecodesAnyRunOfChunks) {
  constexpr std::size_t count = 7 * 2048 + 100;
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::i32})
    for (const bool verified : {false, true}) {
      const Array x = sample(t, Kind::mixed, count);
      const Outcome f = encoded(x, grids_of(t).back());
      const Array y = decoded(x, f);
      for (std::uint64_t first = 0; first <= 8; ++first)
        for (std::uint64_t n = 0; first + n <= 8; ++n) {
          const std::size_t begin = std::min<std::size_t>(count, first * 2048);
          const std::size_t end = std::min<std::size_t>(count, (first + n) * 2048);
          Array part(t, end - begin);
          frame::decode_chunks(f.frame, first, n, part.view(), verified);
          ASSERT_TRUE(part.count == 0 ||
                      std::memcmp(part.data(), y.data() + begin * size_of(t), part.size_bytes()) == 0)
              << first << " + " << n;
        }
    }
}

TEST(Frame, RefusesChunksThatAreNotThere) {
  const Array x = sample(DType::f32, Kind::smooth, 5000);
  const Outcome f = encoded(x, make_grid(DType::f32, 1e-3, 2));
  Array part(DType::f32, 2048);
  const auto decode = [&](std::uint64_t first, std::uint64_t n, std::size_t count) {
    return code_of([&] { frame::decode_chunks(f.frame, first, n, {part.data(), count, DType::f32}); });
  };
  EXPECT_EQ(decode(0, 1, 2048), Code::ok);
  EXPECT_EQ(decode(3, 1, 2048), Code::invalid_argument);
  EXPECT_EQ(decode(4, 0, 0), Code::invalid_argument);
  EXPECT_EQ(decode(2, ~std::uint64_t{0}, 2048), Code::invalid_argument);
  EXPECT_EQ(decode(2, 1, 2048), Code::invalid_argument);  // the last has 904
  EXPECT_EQ(decode(0, 1, 2047), Code::invalid_argument);
}

TEST(Frame, RefusesWhatDoesNotMatch) {
  const Array x = sample(DType::f32, Kind::smooth, 100);
  const Grid g = make_grid(DType::f32, 1e-3, 2);
  const Outcome f = encoded(x, g);
  Array wrong_type(DType::i32, 100);
  Array wrong_count(DType::f32, 101);
  EXPECT_EQ(code_of([&] { frame::decode(f.frame, wrong_type.view()); }), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { frame::decode(f.frame, wrong_count.view()); }), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { decoded(x, f, 1, 0); }), Code::invalid_argument);
  EXPECT_EQ(code_of([&] { decoded(x, encoded(x, make_grid(DType::f32, 0, 2)), 1, 2); }), Code::invalid_argument);
  EXPECT_EQ(encoded(x, make_grid(DType::f64, 1e-3, 2)).code, Code::invalid_argument);
}

/// Every capacity that is too small for the frame is found out; nothing is written past it.
TEST(Frame, TellsOutputsThatAreTooSmall) {
  const Array x = sample(DType::f32, Kind::mixed, 3000);
  const Grid g = make_grid(DType::f32, 1e-3, 2);
  const Outcome f = encoded(x, g);
  const Outcome sum = added(x, f, f);
  const auto expect_too_small = [](std::size_t needed, const char* what, auto write) {
    for (std::size_t room = 0; room < needed; room += room < 60 || room + 40 > needed ? 1 : 97) {
      std::vector<std::uint8_t> out(room + 16, 0xA5);
      EXPECT_EQ(code_of([&] { write(frame::MutBytes(out).first(room)); }), Code::too_small) << what << " into " << room;
      for (std::size_t i = room; i < out.size(); ++i) ASSERT_EQ(out[i], 0xA5) << what << " into " << room;
    }
  };
  for (const auto target : fast_targets()) {
    const OnTarget guard(target);
    expect_too_small(f.frame.size(), "encode", [&](frame::MutBytes out) { frame::encode(x.view(), g, out); });
    expect_too_small(sum.frame.size(), "add", [&](frame::MutBytes out) { frame::add(f.frame, f.frame, out); });
    expect_too_small(sum.frame.size(), "encode_add",
                     [&](frame::MutBytes out) { frame::encode_add(x.view(), f.frame, out); });
  }
}

TEST(Frame, FitsIntoExactlyItsBytes) {
  const Array x = sample(DType::f32, Kind::mixed, 3000);
  const Grid g = make_grid(DType::f32, 1e-3, 2);
  const Outcome f = encoded(x, g);
  EXPECT_EQ(outcome_of(f.frame.size(), [&](frame::MutBytes out) { return frame::encode(x.view(), g, out); }), f);
  const Outcome sum = added(x, f, f);
  EXPECT_EQ(outcome_of(sum.frame.size(), [&](frame::MutBytes out) { return frame::add(f.frame, f.frame, out); }), sum);
}

}  // namespace
}  // namespace laconic::test::frame_test
