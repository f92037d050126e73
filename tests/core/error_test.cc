#include "core/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace laconic::error_test {
namespace {

TEST(Error, CarriesCodeAndText) {
  const Error e(Code::mismatch, "rank 3 has count 7, rank 0 has 8");
  EXPECT_EQ(e.code(), Code::mismatch);
  EXPECT_STREQ(e.what(), "rank 3 has count 7, rank 0 has 8");
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int c = static_cast<int>(Code::ok); c <= static_cast<int>(Code::internal); ++c) {
    names.insert(name_of(static_cast<Code>(c)));
  }
  EXPECT_EQ(names.size(), 9U);
  EXPECT_EQ(names.count("unknown error"), 0U);
  EXPECT_STREQ(name_of(static_cast<Code>(99)), "unknown error");
}

}  // namespace
}  // namespace laconic::error_test
