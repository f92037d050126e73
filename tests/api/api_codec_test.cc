// The C interface's codec functions, and how errors come out of it.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <laconic/laconic.hpp>
#include <string>

#include "core/half.h"

namespace {

std::vector<float> wave(std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = std::sin(static_cast<float>(i) * 0.01F);
  return x;
}

void expect_error(int code, int want, const char* words) {
  EXPECT_EQ(code, want) << laconic_last_error();
  EXPECT_NE(std::string(laconic_last_error()).find(words), std::string::npos) << laconic_last_error();
}

TEST(ApiCodec, RoundTripWithinTheBoundSmallerThanBefore) {
  const auto x = wave(10000);
  const auto stream = laconic::compress<float>(x, {.bound = "1e-3"});
  EXPECT_LT(stream.size(), x.size());
  const laconic_info info = laconic::inspect(stream);
  EXPECT_EQ(info.dtype, LACONIC_F32);
  EXPECT_EQ(info.count, x.size());
  EXPECT_EQ(info.bytes, stream.size());
  EXPECT_EQ(info.bound, 1e-3);
  EXPECT_EQ(info.operands, 1U);
  const auto y = laconic::decompress<float>(stream, 2);
  ASSERT_EQ(y.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_LE(std::abs(x[i] - y[i]), 1e-3F);
}

TEST(ApiCodec, RelativeBoundsKnowTheRangeAndIntegersAreExact) {
  const auto x = wave(5000);
  EXPECT_NEAR(laconic::inspect(laconic::compress<float>(x, {.bound = "1e-2rel"})).bound, 2e-2, 1e-4);
  const std::vector<std::int64_t> numbers{1, -5, INT64_MAX, INT64_MIN, 0};
  EXPECT_EQ(laconic::decompress<std::int64_t>(laconic::compress<std::int64_t>(numbers, {.bound = "1e-3"})), numbers);
  EXPECT_EQ(laconic::decompress<float>(laconic::compress<float>(x, {.bound = "lossless"})), x);
}

struct OtherHalf {
  std::uint16_t bits;
};

}  // namespace

template <>
inline constexpr laconic_dtype laconic::dtype_v<OtherHalf> = LACONIC_F16;
static_assert(laconic::Element<OtherHalf> && laconic::dtype_of<OtherHalf>() == LACONIC_F16);
static_assert(!laconic::Element<std::uint16_t> && !laconic::Element<const float> && !laconic::Element<char32_t>);
static_assert(laconic::dtype_of<long long>() == LACONIC_I64 && laconic::dtype_of<unsigned long long>() == LACONIC_U64);
static_assert(laconic::dtype_of<std::size_t>() == LACONIC_U64 && laconic::dtype_of<std::ptrdiff_t>() == LACONIC_I64);

namespace {

// As the library itself does.
TEST(ApiCodec, HalvesFromAndToFloat) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const auto narrow = [](std::uint32_t x) {
    const auto f = std::bit_cast<float>(x);
    ASSERT_EQ(laconic::f16(f).bits, laconic::f16_of_f32(f)) << x;
    ASSERT_EQ(laconic::bf16(f).bits, laconic::bf16_of_f32(f)) << x;
  };
  for (std::uint32_t h = 0; h <= 0xffffU; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const std::uint32_t wide = bits(laconic::f32_of_f16(half));
    ASSERT_EQ(bits(std::bit_cast<laconic::f16>(half)), wide) << h;
    ASSERT_EQ(bits(std::bit_cast<laconic::bf16>(half)), bits(laconic::f32_of_bf16(half))) << h;
    // Where one of them, or what lies between it and the next, begins.
    for (const std::uint32_t near : {wide, wide + 0x1000, wide + 0x3000, h << 16, (h << 16) + 0x8000}) {
      narrow(near - 1);
      narrow(near);
      narrow(near + 1);
    }
  }
  for (std::uint64_t x = 0; x <= 0xffffffffU; x += 4099) narrow(static_cast<std::uint32_t>(x));
  static_assert(laconic::f16(1.5F) == 1.5F && laconic::bf16(-2.0F) == -2.0F);
}

template <typename T>
void expect_round_trip() {
  std::vector<T> x;
  for (const float e : wave(5000)) x.push_back(static_cast<T>(e));
  const auto stream = laconic::compress<T>(x, {.bound = "1e-2"});
  EXPECT_LT(stream.size(), x.size());
  EXPECT_EQ(laconic::inspect(stream).dtype, laconic::dtype_of<T>());
  const auto y = laconic::decompress<T>(stream);
  ASSERT_EQ(y.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(std::abs(static_cast<float>(x[i]) - static_cast<float>(y[i])), 1e-2F);
  EXPECT_TRUE(laconic::decompress<T>(laconic::compress<T>(x, {.bound = "lossless"})) == x);
}

TEST(ApiCodec, HalvesRoundTrip) {
  expect_round_trip<laconic::f16>();
  expect_round_trip<laconic::bf16>();
#ifdef __FLT16_MANT_DIG__
  expect_round_trip<_Float16>();
#endif
}

TEST(ApiCodec, EncodesWithTheCodecThatIsAskedFor) {
  constexpr std::size_t codec_at = 6;  // docs/format.md
  const auto x = wave(5000);
  std::vector<unsigned char> out(laconic_compress_capacity(x.size(), LACONIC_F32));
  std::vector<float> y(x.size());
  laconic_options o = LACONIC_OPTIONS_INIT;
  for (int codec = LACONIC_SLICE; codec <= LACONIC_ZSTD; ++codec) {
    o.codec = static_cast<laconic_codec>(codec);
    o.bound = codec == LACONIC_ZFP_RATE ? "4x" : "1e-3";
    std::size_t written = 0;
    const int said = laconic_compress(x.data(), x.size(), LACONIC_F32, out.data(), out.size(), &written, &o);
    if (said == LACONIC_UNSUPPORTED && codec >= LACONIC_ZFP) continue;  // not built in
    ASSERT_EQ(said, LACONIC_OK) << codec << laconic_last_error();
    EXPECT_EQ(out[codec_at], codec);
    ASSERT_EQ(laconic_decompress(out.data(), written, y.data(), y.size(), LACONIC_F32, 1), LACONIC_OK);
    if (codec == LACONIC_ZFP_RATE) continue;
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_LE(std::abs(x[i] - y[i]), 1e-3F) << codec;
    if (codec >= LACONIC_LZ4) {
      EXPECT_EQ(x, y);
    }
  }
}

TEST(ApiCodec, WhatACodecHasNoUseForIsUnsupported) {
  const std::vector<std::int32_t> numbers{1, 2, 3};
  const auto x = wave(100);
  std::vector<unsigned char> out(laconic_compress_capacity(100, LACONIC_F64));
  std::size_t written = 0;
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.bound = "1e-3";
  o.codec = LACONIC_SZX;
  laconic_options threads = LACONIC_OPTIONS_INIT;
  for (const int many : {-1, 1025}) {
    threads.threads = many;
    const std::string words = "threads = " + std::to_string(many) + ": want 1 to 1024";
    expect_error(laconic_compress(numbers.data(), 3, LACONIC_I32, out.data(), out.size(), &written, &threads),
                 LACONIC_INVALID_ARGUMENT, words.c_str());
    std::vector<std::int32_t> back(3);
    expect_error(laconic_decompress(out.data(), out.size(), back.data(), 3, LACONIC_I32, many),
                 LACONIC_INVALID_ARGUMENT, words.c_str());
  }
  expect_error(laconic_compress(numbers.data(), 3, LACONIC_I32, out.data(), out.size(), &written, &o),
               LACONIC_UNSUPPORTED, "szx");
  o.bound = "10x";
  o.codec = LACONIC_LZ4;
  expect_error(laconic_compress(x.data(), 100, LACONIC_F32, out.data(), out.size(), &written, &o), LACONIC_UNSUPPORTED,
               "keeps no ratio");
}

TEST(ApiCodec, NothingIsAStreamToo) {
  const auto stream = laconic::compress<double>({}, {.bound = "1e-3"});
  EXPECT_TRUE(laconic::decompress<double>(stream).empty());
}

TEST(ApiCodec, ErrorsSayWhichArgument) {
  const auto x = wave(100);
  std::vector<unsigned char> out(laconic_compress_capacity(100, LACONIC_F32));
  std::size_t written = 0;
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.bound = "1e-3furlongs";
  expect_error(laconic_compress(x.data(), 100, LACONIC_F32, out.data(), out.size(), &written, &o),
               LACONIC_INVALID_ARGUMENT, "furlongs");
  o.bound = "1e-3";
  expect_error(laconic_compress(nullptr, 100, LACONIC_F32, out.data(), out.size(), &written, &o),
               LACONIC_INVALID_ARGUMENT, "data");
  expect_error(laconic_compress(x.data(), 100, static_cast<laconic_dtype>(77), out.data(), out.size(), &written, &o),
               LACONIC_INVALID_ARGUMENT, "dtype 77");
  EXPECT_EQ(laconic_compress_capacity(100, static_cast<laconic_dtype>(256 + LACONIC_F32)), 0U);
  expect_error(laconic_compress(x.data(), 100, LACONIC_F32, out.data(), 10, &written, &o), LACONIC_TOO_SMALL, "");
  o.struct_size = 0;
  expect_error(laconic_compress(x.data(), 100, LACONIC_F32, out.data(), out.size(), &written, &o),
               LACONIC_INVALID_ARGUMENT, "LACONIC_OPTIONS_INIT");
  EXPECT_EQ(laconic_compress_capacity(100, static_cast<laconic_dtype>(0)), 0U);
}

TEST(ApiCodec, WhatNoMemoryHoldsIsRefused) {
  const auto x = wave(100);
  std::vector<unsigned char> out(1000);
  std::size_t written = 0;
  for (const std::size_t count : {SIZE_MAX, SIZE_MAX / 4 + 2, SIZE_MAX / 8 + 1}) {
    expect_error(laconic_compress(x.data(), count, LACONIC_F32, out.data(), out.size(), &written, nullptr),
                 LACONIC_INVALID_ARGUMENT, "count is ");
    expect_error(laconic_decompress(out.data(), out.size(), out.data(), count, LACONIC_F32, 1),
                 LACONIC_INVALID_ARGUMENT, "count is ");
    EXPECT_EQ(laconic_compress_capacity(count, LACONIC_F32), 0U);
  }
  const std::size_t most = PTRDIFF_MAX / 8;
  EXPECT_GT(laconic_compress_capacity(most, LACONIC_F64), most * 8);
  EXPECT_EQ(laconic_compress_capacity(most + 1, LACONIC_F64), 0U);
}

TEST(ApiCodec, NothingIsInPlaceHere) {
  std::vector<unsigned char> out(1000);
  std::size_t written = 0;
  laconic_info info{};
  info.struct_size = sizeof info;
  const auto compress = [&](const void* data, void* stream) {
    return laconic_compress(data, 50, LACONIC_F32, stream, out.size(), &written, nullptr);
  };
  expect_error(compress(LACONIC_IN_PLACE, out.data()), LACONIC_INVALID_ARGUMENT, "data is null or in place");
  expect_error(compress(wave(50).data(), LACONIC_IN_PLACE), LACONIC_INVALID_ARGUMENT, "stream is null or in place");
  expect_error(laconic_inspect(LACONIC_IN_PLACE, 100, &info), LACONIC_INVALID_ARGUMENT, "stream");
  expect_error(laconic_decompress(LACONIC_IN_PLACE, 100, out.data(), 50, LACONIC_F32, 1), LACONIC_INVALID_ARGUMENT,
               "stream");
  expect_error(laconic_decompress(out.data(), 100, LACONIC_IN_PLACE, 50, LACONIC_F32, 1), LACONIC_INVALID_ARGUMENT,
               "data");
}

TEST(ApiCodec, DamageIsNoticed) {
  auto stream = laconic::compress<float>(wave(5000), {.bound = "1e-3"});
  stream[stream.size() / 2] ^= std::byte{4};
  EXPECT_THROW(laconic::decompress<float>(stream), laconic::Error);
  laconic_info info{};
  info.struct_size = sizeof info;
  expect_error(laconic_inspect(stream.data(), stream.size(), &info), LACONIC_CORRUPT, "");
  expect_error(laconic_inspect(stream.data(), 5, &info), LACONIC_CORRUPT, "");
  info.struct_size = 1;
  expect_error(laconic_inspect(stream.data(), stream.size(), &info), LACONIC_INVALID_ARGUMENT, "struct_size");
}

#if defined(__x86_64__) && defined(__GLIBC__)
TEST(ApiCodec, DamageIsNoticedWhereTheProgramTrapsInvalidOperations) {
  auto stream = laconic::compress<float>(wave(5000), {.bound = "1e-3"});
  const double step = std::nan("");
  std::memcpy(stream.data() + 32, &step, sizeof step);
  laconic_info info{};
  info.struct_size = sizeof info;
  const int before = feenableexcept(FE_INVALID);
  const int code = laconic_inspect(stream.data(), stream.size(), &info);
  fedisableexcept(FE_ALL_EXCEPT);
  feenableexcept(before);
  EXPECT_EQ(code, LACONIC_CORRUPT);
}
#endif

TEST(ApiCodec, NamesAndVersion) {
  EXPECT_FALSE(std::string(laconic_version()).empty());
  EXPECT_EQ(std::string(laconic_error_name(LACONIC_INVALID_ARGUMENT)), "invalid argument");
}

TEST(ApiCodec, NoCommunicatorIsAnErrorNotACrash) {
  float x = 1;
  expect_error(laconic_allreduce(&x, &x, 1, LACONIC_F32, LACONIC_SUM, nullptr, nullptr), LACONIC_INVALID_ARGUMENT,
               "comm");
  expect_error(laconic_reduce_scatter_block(&x, &x, 1, LACONIC_F32, LACONIC_SUM, nullptr, nullptr),
               LACONIC_INVALID_ARGUMENT, "comm");
  EXPECT_EQ(laconic_comm_rank(nullptr), -1);
  EXPECT_EQ(laconic_comm_size(nullptr), -1);
  laconic_comm_free(nullptr);
}

}  // namespace
