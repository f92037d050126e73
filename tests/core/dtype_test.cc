#include "core/dtype.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace laconic::dtype_test {
namespace {

constexpr DType all[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                         DType::i32, DType::i64, DType::u32, DType::u64};

TEST(DType, NamesRoundTrip) {
  for (DType t : all) {
    EXPECT_EQ(parse_dtype(name_of(t)), t);
    EXPECT_TRUE(is_valid(t));
  }
  EXPECT_EQ(name_of(static_cast<DType>(0)), "?");
  EXPECT_EQ(name_of(static_cast<DType>(9)), "?");
}

TEST(DType, SizesAndKinds) {
  EXPECT_EQ(size_of(DType::f16), 2U);
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_EQ(size_of(DType::f32), 4U);
  EXPECT_EQ(size_of(DType::u32), 4U);
  EXPECT_EQ(size_of(DType::f64), 8U);
  EXPECT_EQ(size_of(DType::i64), 8U);
  EXPECT_FALSE(is_valid(static_cast<DType>(0)));
  EXPECT_FALSE(is_valid(static_cast<DType>(255)));
  for (DType t : all) EXPECT_EQ(is_float(t), name_of(t).find('f') != std::string_view::npos);
}

TEST(DType, UnderstandsNumPyAndC) {
  EXPECT_EQ(parse_dtype("float32"), DType::f32);
  EXPECT_EQ(parse_dtype("<f4"), DType::f32);
  EXPECT_EQ(parse_dtype("=f8"), DType::f64);
  EXPECT_EQ(parse_dtype("f2"), DType::f16);
  EXPECT_EQ(parse_dtype("bfloat16"), DType::bf16);
  EXPECT_EQ(parse_dtype("<i8"), DType::i64);
  EXPECT_EQ(parse_dtype("uint64"), DType::u64);
  EXPECT_EQ(parse_dtype("double"), DType::f64);
}

TEST(DType, RefusesTheRest) {
  for (const char* text : {"", "<", "f", "f128", "<float32", "F32", "f32 ", "|u1", "complex64", "<bf16"}) {
    try {
      (void)parse_dtype(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::invalid_argument);
      EXPECT_NE(std::string(e.what()).find("'" + std::string(text) + "'"), std::string::npos) << e.what();
    }
  }
  try {
    (void)parse_dtype(">f4");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unsupported);
  }
}

}  // namespace
}  // namespace laconic::dtype_test
