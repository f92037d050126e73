// What every codec promises, whoever designed it: the bound for each value, hard data included; frames no larger than
// their capacity; the same bytes on any number of threads and any target.
#include <gtest/gtest.h>

#include "codec/codec_cases.h"
#include "support/patched_crc.h"

namespace laconic::test::codecs_test {
namespace {

Code code_of_decoding(const std::vector<std::uint8_t>& bytes) {
  try {
    const frame::Header h = frame::check(bytes);
    if (h.count > 100000) return Code::ok;
    Array y(h.grid.dtype, h.count);
    frame::decode(bytes, y.view());
  } catch (const Error& e) {
    return e.code();
  }
  return Code::ok;
}

class Codecs : public testing::TestWithParam<const Codec*> {
 protected:
  static const Codec& codec() { return *GetParam(); }
  static std::vector<DType> dtypes() {
    std::vector<DType> taken;
    for (const DType t : all_dtypes)
      if (codec().takes(t)) taken.push_back(t);
    return taken;
  }
};

TEST_P(Codecs, KeepTheirPromiseForEveryElement) {
  for (const DType t : dtypes())
    for (const Grid& g : grids_for(codec(), t))
      for (const Kind kind : all_kinds)
        for (const std::size_t count : {1U, 129U, kind == Kind::mixed ? 20001U : 5153U}) {
          const Array x = sample(t, kind, count);
          const Outcome f = encoded_by(codec(), x, g);
          ASSERT_EQ(f.code, Code::ok);
          ASSERT_EQ(broken_promise(codec(), g, x, decoded(x, f)), "") << describe(codec(), t, g, kind, count);
        }
}

/// A block of few values whose upper bytes are 0 can be shorter than anything else that a codec writes.
TEST_P(Codecs, KeepFewBitsToTheLast) {
  if (codec().promise() == Promise::rate) return;
  for (const DType t : dtypes())
    for (const std::size_t count : {2U, 3U, 5U, 130U, 5122U, 8194U}) {
      Array x = sample(t, Kind::smooth, count);
      for (std::size_t i = count - 2; i < count; ++i) x.set_bits(i, i % 2);
      const Grid lossless{.dtype = t};
      ASSERT_EQ(broken_promise(codec(), lossless, x, decoded(x, encoded_by(codec(), x, lossless))), "")
          << describe(codec(), t, lossless, Kind::smooth, count);
    }
}

TEST_P(Codecs, StayWithinTheirCapacity) {
  for (const DType t : dtypes())
    for (const Grid& g : grids_for(codec(), t))
      for (const Kind kind : {Kind::random_bits, Kind::nan_and_infinity, Kind::constant, Kind::smooth})
        for (const std::size_t count : {0U, 1U, 2U, 31U, 32U, 65U, 128U, 2049U, 5120U, 8193U}) {
          SCOPED_TRACE(describe(codec(), t, g, kind, count));
          const std::size_t capacity = frame::capacity(t, count, codec());
          ASSERT_LE(static_cast<double>(capacity), 1.02 * static_cast<double>(count * size_of(t)) + 64);
          const Array x = sample(t, kind, count);
          const Outcome f = encoded_by(codec(), x, g);
          ASSERT_EQ(f.code, Code::ok);
          ASSERT_LE(f.frame.size(), capacity);
          ASSERT_EQ(frame::check(f.frame).codec, codec().id());
          decoded(x, f);
        }
}

TEST_P(Codecs, MakeSmoothDataSmaller) {
  for (const DType t : dtypes()) {
    if (!is_float(t)) continue;
    const Array x = sample(t, Kind::smooth, 50000);
    const Grid g = codec().promise() == Promise::rate ? rate_grid(t, 8) : make_grid(t, 1e-2, 1.3);
    const auto size = static_cast<double>(encoded_by(codec(), x, g).frame.size());
    EXPECT_LT(size, 0.95 * static_cast<double>(x.size_bytes())) << name_of(t);
    if (codec().promise() == Promise::rate) {
      EXPECT_NEAR(size, static_cast<double>(x.size_bytes()) / 8, 1000);
    }
  }
}

TEST_P(Codecs, GiveTheSameBytesOnAnyNumberOfThreads) {
  for (const DType t : dtypes()) {
    const Array x = sample(t, Kind::mixed, 140001);
    const Grid g = grids_for(codec(), t).back();
    const Outcome one = encoded_by(codec(), x, g);
    const Array y = decoded(x, one);
    for (const int threads : {2, 3, 7}) {
      ASSERT_EQ(encoded_by(codec(), x, g, threads), one);
      ASSERT_TRUE(decoded(x, one, threads) == y);
    }
  }
}

TEST_P(Codecs, GiveTheSameBytesOnEveryTarget) {
  for (const DType t : dtypes())
    for (const Grid& g : grids_for(codec(), t)) {
      const Array x = sample(t, Kind::mixed, 20001);
      const OnTarget scalar(slice::Target::scalar);
      const Outcome reference = encoded_by(codec(), x, g);
      const Array y = decoded(x, reference);
      for (const auto target : fast_targets()) {
        const OnTarget guard(target);
        ASSERT_EQ(encoded_by(codec(), x, g), reference) << slice::name_of(target);
        ASSERT_TRUE(decoded(x, reference) == y) << slice::name_of(target);
      }
    }
}

TEST_P(Codecs, ReadUnalignedArraysAndWriteNothingElse) {
  for (const DType t : dtypes()) {
    const Array x = sample(t, Kind::mixed, 9001);
    const Array off = sample(t, Kind::mixed, 9001, 1, 1);
    const Grid g = grids_for(codec(), t).back();
    const Outcome f = encoded_by(codec(), x, g);
    ASSERT_EQ(encoded_by(codec(), off, g), f);
    ASSERT_TRUE(decoded(x, f, 1, 1, 1) == decoded(x, f));
    ASSERT_EQ(
        outcome_of(f.frame.size(), [&](frame::MutBytes out) { return frame::encode(codec(), x.view(), g, out, 2); }),
        f);
    for (std::size_t room = 0; room < f.frame.size(); room += 1 + room / 3) {
      std::vector<std::uint8_t> out(room + 200, 0xA5);
      EXPECT_THROW(frame::encode(codec(), x.view(), g, frame::MutBytes(out).first(room)), Error);
      for (std::size_t i = room; i < out.size(); ++i) ASSERT_EQ(out[i], 0xA5) << i << " past " << room;
    }
  }
}

TEST_P(Codecs, DecodeAnyRunOfChunks) {
  constexpr std::size_t count = 140001;
  for (const DType t : dtypes()) {
    const Array x = sample(t, Kind::mixed, count);
    const Outcome f = encoded_by(codec(), x, grids_for(codec(), t).back());
    const Array y = decoded(x, f);
    for (const std::uint64_t first : {0U, 1U, 3U, 40U, 68U})
      for (const std::uint64_t n : {0U, 1U, 7U, 28U}) {
        const std::size_t begin = first * 2048;
        const std::size_t end = std::min<std::size_t>(count, (first + n) * 2048);
        if (first + n > 69) continue;
        Array part(t, end - begin);
        frame::decode_chunks(f.frame, first, n, part.view());
        ASSERT_TRUE(part.count == 0 || std::memcmp(part.data(), y.data() + begin * size_of(t), part.size_bytes()) == 0)
            << first << " + " << n;
      }
  }
}

/// A damaged payload behind a right checksum: an error or other values, and nothing out of bounds (the sanitizers
/// look).
TEST_P(Codecs, SurviveDamage) {
  Random random(21);
  for (const DType t : dtypes())
    for (const Kind kind : {Kind::smooth, Kind::mixed, Kind::nan_and_infinity})
      for (const Grid& g : grids_for(codec(), t)) {
        const Array x = sample(t, kind, 6000);
        const Outcome f = encoded_by(codec(), x, g);
        for (int k = 0; k < 10; ++k) {
          std::vector<std::uint8_t> bytes = f.frame;
          for (std::size_t j = 0; j <= random.below(4); ++j) {
            const std::size_t place = random.below(3) == 0 ? random.below(100) : random.below(bytes.size());
            bytes[std::min(place, bytes.size() - 1)] ^= static_cast<std::uint8_t>(1 + random.below(255));
          }
          if (k % 4 == 0) bytes.resize(frame::header_bytes + random.below(bytes.size() - frame::header_bytes));
          const std::uint64_t size = bytes.size();
          std::memcpy(bytes.data() + 24, &size, 8);
          patch_checksum(bytes.data(), bytes.size());
          const Code code = code_of_decoding(bytes);
          ASSERT_TRUE(code == Code::ok || code == Code::corrupt) << static_cast<int>(code);
        }
      }
}

INSTANTIATE_TEST_SUITE_P(All, Codecs, testing::ValuesIn(built_codecs()), [](const auto& p) {
  std::string name(p.param->name());
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(CodecNames, AreFoundAndUnknownOnesAreListed) {
  for (const Codec* c : all_codecs()) {
    EXPECT_EQ(&find_codec(c->name()), c);
    EXPECT_EQ(find_codec(c->id()), c);
  }
  EXPECT_EQ(find_codec(CodecId{99}), nullptr);
  try {
    find_codec("gzip");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("fzlight"), std::string::npos);
  }
}

TEST(CodecNames, SayWhatTheyDoNotTake) {
  const Array integers = sample(DType::i32, Kind::smooth, 100);
  const Array floats = sample(DType::f32, Kind::smooth, 100);
  const Codec& rate = find_codec("zfp-rate");
  EXPECT_EQ(encoded_by(find_codec("szx"), integers, make_grid(DType::i32, 0, 1)).code, Code::unsupported);
  EXPECT_EQ(
      encoded_by(find_codec("fzlight"), sample(DType::f16, Kind::smooth, 100), make_grid(DType::f16, 0.1, 1)).code,
      Code::unsupported);
  EXPECT_EQ(encoded_by(find_codec("lz4"), floats, rate_grid(DType::f32, 4)).code, Code::unsupported);
  EXPECT_EQ(encoded_by(rate, floats, make_grid(DType::f32, 0.1, 1)).code, Code::unsupported);
  EXPECT_THROW(grid_for(rate, DType::f32, Bound::parse("1e-3"), {}), Error);
  EXPECT_THROW(grid_for(slice_codec(), DType::f32, Bound::parse("33x"), {}), Error);
  EXPECT_EQ(grid_for(slice_codec(), DType::f32, Bound::parse("8x"), {}).step, 4);
  EXPECT_TRUE(grid_for(slice_codec(), DType::i32, Bound::parse("8x"), {}).lossless());
  EXPECT_THROW(grid_for(find_codec("zstd"), DType::f32, Bound::parse("8x"), {}), Error);
  EXPECT_THROW(rate_grid(DType::f32, 0.5), Error);
  EXPECT_THROW(rate_grid(DType::f32, 100), Error);
  EXPECT_EQ(grid_for(rate, DType::f64, Bound::parse("16x"), {}).step, 4);
  EXPECT_TRUE(grid_for(find_codec("lz4"), DType::f32, Bound::parse("1e-3"), {}).lossless());
}

TEST(Grids, AreRefusedWithTheNumberThatIsWrongHoweverSmall) {
  try {
    make_grid(DType::f32, -1e-9, 1);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "bound: -1e-09 is not a finite number >= 0");
  }
  try {
    make_grid(DType::f32, 1e-3, -1e-30);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "max_abs: -1e-30 is not a magnitude");
  }
}

// Where zfp's scale overflows, it would make something else of it on every processor, and larger than it was.
TEST(CodecNames, RatesSayTinyValuesAsWell) {
  const Codec& rate = find_codec("zfp-rate");
  if (!rate.available()) GTEST_SKIP() << "zfp was not there when this was built";
  for (const DType t : {DType::f32, DType::f64}) {
    Array x(t, 4096);
    const double most = t == DType::f32 ? 0x1p-100 : 0x1p-1000;
    for (std::size_t i = 0; i < x.count; ++i) x.set_value(i, i % 5 == 0 ? 0 : most / static_cast<double>(i % 7 + 1));
    const Array y = decoded(x, encoded_by(rate, x, rate_grid(t, 4)));
    for (std::size_t i = 0; i < x.count; ++i) ASSERT_LE(std::abs(y.value(i)), most) << i;
  }
}

TEST(CodecNames, RatesOfWholeBlocksAreNeverMoreThanWasAskedFor) {
  const Codec& rate = find_codec("zfp-rate");
  if (!rate.available()) GTEST_SKIP() << "zfp was not there when this was built";
  constexpr std::size_t side = 64;
  for (const DType t : {DType::f32, DType::f64}) {
    const Array x = sample(t, Kind::smooth, side * side * side);
    for (const Extents e : {Extents{}, Extents{side, 0}, Extents{side, side}}) {
      const double block = e.fast == 0 ? 4 : e.middle == 0 ? 16 : 64;
      const double most = 8 * static_cast<double>(size_of(t)) * block / (t == DType::f32 ? 9 : 12);
      for (const double ratio : {1.5, 3.0, 7.0, 9.9, 10.0, 12.0, 14.2, 14.3, 20.0, 24.0, 30.0}) {
        const Outcome f = encoded_by(rate, x, rate_grid(t, ratio), 1, e);
        EXPECT_EQ(f.code, ratio <= most ? Code::ok : Code::unsupported) << ratio << " of " << most;
        if (f.code != Code::ok) continue;
        // A piece has a head of 16 bytes and a size, a frame one of 48.
        const std::size_t beside = frame::header_bytes + 8 + 20 * (x.count / 16384 + 1);
        EXPECT_LE(static_cast<double>(f.frame.size()),
                  static_cast<double>(x.bytes.size()) / ratio + static_cast<double>(beside))
            << ratio;
        EXPECT_EQ(code_of_decoding(f.frame), Code::ok);
      }
    }
  }
}

// Where four slabs do not fit in a piece, its blocks are those of rows, and where four rows do not, those of lines.
TEST(CodecNames, RatesAreThoseOfThePiecesThatLongRowsAndLargeSlabsLeave) {
  const Codec& rate = find_codec("zfp-rate");
  if (!rate.available()) GTEST_SKIP() << "zfp was not there when this was built";
  struct Case {
    Extents extents;
    double largest;
  };
  for (const Case& c : {Case{{512, 512}, 32 * 16 / 9.0}, Case{{512, 256}, 32 * 16 / 9.0},
                        Case{{65540, 2}, 32 * 4 / 9.0}, Case{{65536, 0}, 32 * 16 / 9.0}}) {
    const double least = 32 / c.largest;
    EXPECT_EQ(rate.rates(DType::f32, c.extents).least, least) << c.extents.fast << " x " << c.extents.middle;
    Grid g = rate_grid(DType::f32, 1);
    g.step = least;
    const Array x = sample(DType::f32, Kind::smooth, 8 * c.extents.fast * std::max<std::size_t>(c.extents.middle, 1));
    const Outcome f = encoded_by(rate, x, g, 1, c.extents);
    ASSERT_EQ(f.code, Code::ok);
    EXPECT_LE(static_cast<double>(f.frame.size()), static_cast<double>(x.bytes.size()) / c.largest * 1.02 + 400);
    g.step = least * 0.99;
    EXPECT_EQ(encoded_by(rate, x, g, 1, c.extents).code, Code::unsupported);
  }
}

TEST(CodecNames, ARatioBeyondARatesNamesTheLargest) {
  const Codec& rate = find_codec("zfp-rate");
  if (!rate.available()) GTEST_SKIP() << "zfp was not there when this was built";
  try {
    grid_for(rate, DType::f32, Bound::parse("16x"), {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unsupported);
    EXPECT_STREQ(
        e.what(),
        "bound: a ratio of 16x is more than zfp-rate has for f32, where no extents are known; ask for at most 14.2x");
  }
  EXPECT_EQ(grid_for(rate, DType::f32, Bound::parse("14.2x"), {}).step, 2.25);
  EXPECT_EQ(grid_for(rate, DType::f32, Bound::parse("10x"), {}).step, 3);
  EXPECT_EQ(grid_for(rate, DType::f32, Bound::parse("16x"), {}, {64, 64}).step, 2);
}

TEST(CodecNames, RatesPromiseNoOtherBound) {
  const Codec& rate = find_codec("zfp-rate");
  if (!rate.available()) GTEST_SKIP() << "zfp was not there when this was built";
  const Array x = sample(DType::f32, Kind::smooth, 4096);
  const std::vector<std::uint8_t> good = encoded_by(rate, x, rate_grid(DType::f32, 4)).frame;
  ASSERT_EQ(code_of_decoding(good), Code::ok);
  for (const double bound : {std::nan(""), -HUGE_VAL, 1.0, 0.0}) {
    std::vector<std::uint8_t> bytes = good;
    std::memcpy(bytes.data() + frame::at_bound, &bound, sizeof bound);
    patch_checksum(bytes.data(), bytes.size());
    EXPECT_EQ(code_of_decoding(bytes), Code::corrupt) << bound;
  }
}

TEST(CodecNames, FramesThatDoNotAddSaySo) {
  const Array x = sample(DType::f32, Kind::smooth, 100);
  const Grid g = make_grid(DType::f32, 1e-3, 2);
  const Outcome other = encoded_by(find_codec("szx"), x, g);
  EXPECT_EQ(added(x, other, other).code, Code::unsupported);
  EXPECT_EQ(added(x, other, encoded(x, g)).code, Code::mismatch);
  EXPECT_EQ(encode_added(x, other).code, Code::unsupported);
  EXPECT_THROW(decoded(x, other, 1, 2), Error);
}

}  // namespace
}  // namespace laconic::test::codecs_test
