#include "core/stats.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace laconic::stats_test {
namespace {

Stats sample() {
  Stats s;
  s.calls = 2;
  s.original_bytes = 1000;
  s.wire_bytes = 100;
  s.codec_seconds = 0.25;
  s.wire_seconds = 0.5;
  s.compute_seconds = 1;
  s.other_seconds = 2;
  s.add_fallback("small");
  return s;
}

TEST(Stats, RatioAndTotal) {
  EXPECT_EQ(sample().ratio(), 10);
  EXPECT_EQ(sample().total_seconds(), 3.75);
  EXPECT_EQ(Stats{}.ratio(), 1);
}

TEST(Stats, MergeAddsEverything) {
  Stats a = sample();
  Stats b = sample();
  b.add_fallback("small");
  b.add_fallback("incompressible");
  a.merge(b);
  EXPECT_EQ(a.calls, 4U);
  EXPECT_EQ(a.original_bytes, 2000U);
  EXPECT_EQ(a.wire_bytes, 200U);
  EXPECT_EQ(a.total_seconds(), 7.5);
  EXPECT_EQ(a.fallbacks, (std::map<std::string, std::uint64_t>{{"incompressible", 1}, {"small", 3}}));
  Stats c = sample();
  c.merge(Stats{});
  EXPECT_EQ(c, sample());
}

TEST(Stats, JsonSaysTheSame) {
  const auto json = nlohmann::json::parse(sample().to_json());
  EXPECT_EQ(json.at("calls"), 2);
  EXPECT_EQ(json.at("original_bytes"), 1000);
  EXPECT_EQ(json.at("wire_bytes"), 100);
  EXPECT_EQ(json.at("ratio"), 10.0);
  EXPECT_EQ(json.at("codec_seconds"), 0.25);
  EXPECT_EQ(json.at("wire_seconds"), 0.5);
  EXPECT_EQ(json.at("compute_seconds"), 1.0);
  EXPECT_EQ(json.at("other_seconds"), 2.0);
  EXPECT_EQ(json.at("fallbacks").at("small"), 1);
  EXPECT_EQ(sample().to_json().find('\n'), std::string::npos);
}

TEST(Stats, JsonSurvivesAnyReason) {
  Stats s;
  s.add_fallback("quote \" and \xff\xfe broken UTF-8\n");
  EXPECT_TRUE(nlohmann::json::accept(s.to_json()));
}

TEST(Stats, TimedAdds) {
  double seconds = 1;
  {
    const Timed timed(seconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GE(seconds, 1.002);
}

}  // namespace
}  // namespace laconic::stats_test
