#include "core/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/error.h"

namespace laconic::config_test {
namespace {

Config with(std::map<std::string, std::string> environment) {
  return Config::from([&](const char* name) -> std::optional<std::string> {
    const auto it = environment.find(name);
    if (it == environment.end()) return std::nullopt;
    return it->second;
  });
}

std::string refusal(const std::string& name, const std::string& value) {
  try {
    (void)with({{name, value}});
    return "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid_argument);
    return e.what();
  }
}

TEST(Config, NothingSetChangesNothing) {
  const Config c = with({});
  EXPECT_FALSE(c.bound.has_value());
  EXPECT_EQ(c.threads, 1);
  EXPECT_FALSE(c.verify);
  EXPECT_EQ(c.timeout_seconds, std::nullopt);
  EXPECT_EQ(c.simd, Simd::automatic);
  EXPECT_EQ(c.log_level, LogLevel::off);
  EXPECT_TRUE(c.log_path.empty());
  EXPECT_EQ(c.mode, Mode::automatic);
  EXPECT_TRUE(c.cache.empty());
}

TEST(Config, ModeAndCache) {
  EXPECT_EQ(with({{"LACONIC_MODE", "compressed"}}).mode, Mode::compressed);
  EXPECT_EQ(with({{"LACONIC_MODE", "plain"}}).mode, Mode::plain);
  EXPECT_EQ(refusal("LACONIC_MODE", "raw"), "LACONIC_MODE='raw': want one of auto compressed plain");
  EXPECT_EQ(with({{"LACONIC_CACHE", "off"}}).cache, "off");
}

TEST(Config, FilesAreWhereTheyWereSaidToBe) {
  const std::string here = std::filesystem::current_path().string() + "/";
  EXPECT_EQ(with({{"LACONIC_REPORT", "a/b.json"}}).report, here + "a/b.json");
  EXPECT_EQ(with({{"LACONIC_REPORT", "/a/b.json"}}).report, "/a/b.json");
  EXPECT_EQ(with({{"LACONIC_REPORT", "summary"}}).report, "summary");
  EXPECT_EQ(with({{"LACONIC_CACHE", "folder"}}).cache, here + "folder");
}

TEST(Config, EmptyCountsAsNotSet) {
  const Config c = with({{"LACONIC_BOUND", ""}, {"LACONIC_THREADS", ""}, {"LACONIC_LOG", ""}});
  EXPECT_FALSE(c.bound.has_value());
  EXPECT_EQ(c.threads, 1);
  EXPECT_EQ(c.log_level, LogLevel::off);
}

TEST(Config, ReadsEverything) {
  const Config c = with({{"LACONIC_BOUND", "1e-3rel"},
                         {"LACONIC_THREADS", "16"},
                         {"LACONIC_VERIFY", "1"},
                         {"LACONIC_CHECK", "1"},
                         {"LACONIC_TIMEOUT", "2.5"},
                         {"LACONIC_SIMD", "avx2"},
                         {"LACONIC_NCCL_SOCKETS", "off"},
                         {"LACONIC_LOG", "debug,file:a,b.log"}});
  EXPECT_EQ(c.bound, Bound::parse("1e-3rel"));
  EXPECT_EQ(c.threads, 16);
  EXPECT_TRUE(c.verify);
  EXPECT_TRUE(c.check);
  EXPECT_EQ(c.timeout_seconds, 2.5);
  EXPECT_EQ(c.simd, Simd::avx2);
  EXPECT_FALSE(c.nccl_sockets);
  EXPECT_EQ(c.log_level, LogLevel::debug);
  EXPECT_EQ(c.log_path, "a,b.log");
}

TEST(Config, LogForms) {
  EXPECT_EQ(with({{"LACONIC_LOG", "warning"}}).log_level, LogLevel::warning);
  EXPECT_EQ(with({{"LACONIC_LOG", "off"}}).log_level, LogLevel::off);
  const Config c = with({{"LACONIC_LOG", "file:out.log"}});
  EXPECT_EQ(c.log_level, LogLevel::info);
  EXPECT_EQ(c.log_path, "out.log");
}

TEST(Config, EverySimdName) {
  for (Simd s : {Simd::automatic, Simd::scalar, Simd::portable, Simd::avx2, Simd::avx512, Simd::avx512x}) {
    EXPECT_EQ(with({{"LACONIC_SIMD", std::string(name_of(s))}}).simd, s);
  }
}

TEST(Config, RefusalNamesVariableAndValue) {
  EXPECT_EQ(refusal("LACONIC_THREADS", "two"), "LACONIC_THREADS='two': want a whole number from 1 to 1024");
  EXPECT_EQ(refusal("LACONIC_VERIFY", "yes"), "LACONIC_VERIFY='yes': want 0 or 1");
  EXPECT_EQ(refusal("LACONIC_CHECK", "2"), "LACONIC_CHECK='2': want 0 or 1");
  EXPECT_EQ(refusal("LACONIC_SIMD", "sse"), "LACONIC_SIMD='sse': want one of auto scalar portable avx2 avx512 avx512x");
  EXPECT_EQ(refusal("LACONIC_NCCL_SOCKETS", "no"), "LACONIC_NCCL_SOCKETS='no': want one of on off");
  EXPECT_NE(refusal("LACONIC_BOUND", "1e-3re").find("LACONIC_BOUND: bound '1e-3re'"), std::string::npos);
}

TEST(Config, RefusesTheRest) {
  for (const char* v : {"0", "-1", "1025", "1.5", "4 ", " 4", "0x4", "99999999999999999999"}) {
    EXPECT_NE(refusal("LACONIC_THREADS", v), "accepted") << v;
  }
  for (const char* v : {"-1", "nan", "inf", "1s", "1e999", "ten", "-0"}) {
    EXPECT_NE(refusal("LACONIC_TIMEOUT", v), "accepted") << v;
  }
  for (const char* v : {"verbose", "info,", "info,out.log", "file:", "debug,file:", ",file:x"}) {
    EXPECT_NE(refusal("LACONIC_LOG", v), "accepted") << v;
  }
}

TEST(Config, FromTheRealEnvironment) {
  ASSERT_EQ(setenv("LACONIC_TIMEOUT", "7", 1), 0);
  EXPECT_EQ(Config::from_environment().timeout_seconds, 7);
  ASSERT_EQ(unsetenv("LACONIC_TIMEOUT"), 0);
  EXPECT_EQ(Config::from_environment().timeout_seconds, std::nullopt);
}

TEST(Config, NamesThatMeanNothingAreFound) {
  const auto unknown_with = [](const char* name, const char* value) {
    EXPECT_EQ(setenv(name, value, 1), 0);
    const std::vector<std::string> unknown = Config::from_environment().unknown;
    EXPECT_EQ(unsetenv(name), 0);
    return std::ranges::count(unknown, name);
  };
  for (const char* misspelt : {"LACONIC_BUOND", "LACONIC_", "LACONIC_TIMEOUTS"})
    EXPECT_EQ(unknown_with(misspelt, "1"), 1);
  EXPECT_EQ(unknown_with("LACONIC_BUOND", ""), 0);
  EXPECT_EQ(unknown_with("ALACONIC_X", "1"), 0);
  for (const char* known : {"LACONIC_TIMEOUT", "LACONIC_NONBLOCKING", "LACONIC_DATA"})
    EXPECT_EQ(unknown_with(known, known == std::string("LACONIC_NONBLOCKING") ? "on" : "1"), 0) << known;
}

}  // namespace
}  // namespace laconic::config_test
