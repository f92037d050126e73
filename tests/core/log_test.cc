#include "core/log.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "core/config.h"
#include "core/error.h"

namespace laconic::log_test {
namespace {

/// Every test leaves the log as it found it: off.
class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_log(LogLevel::off, {});
    set_log_name("");
  }
  void collect(LogLevel level) {
    set_log(level, [this](LogLevel l, std::string_view m) {
      lines.push_back(std::string(name_of(l)) + "|" + std::string(m));
    });
  }
  std::vector<std::string> lines;
};

TEST_F(Log, SilentByDefault) {
  for (LogLevel l : {LogLevel::off, LogLevel::error, LogLevel::debug}) EXPECT_FALSE(log_enabled(l));
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  log(LogLevel::error, "nobody hears this");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(Log, LetsThroughUpToItsLevel) {
  collect(LogLevel::info);
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_TRUE(log_enabled(LogLevel::info));
  EXPECT_FALSE(log_enabled(LogLevel::debug));
  EXPECT_FALSE(log_enabled(LogLevel::off));
  log(LogLevel::warning, "a");
  log(LogLevel::debug, "b");
  log(LogLevel::off, "c");
  EXPECT_EQ(lines, (std::vector<std::string>{"warning|a"}));
}

TEST_F(Log, NameComesFirst) {
  collect(LogLevel::info);
  set_log_name("rank 3");
  log(LogLevel::info, "hello");
  EXPECT_EQ(lines, (std::vector<std::string>{"info|rank 3: hello"}));
}

TEST_F(Log, EmptySinkTurnsOff) {
  set_log(LogLevel::debug, {});
  EXPECT_FALSE(log_enabled(LogLevel::error));
}

TEST_F(Log, StderrSink) {
  set_log(LogLevel::info, stderr_sink());
  testing::internal::CaptureStderr();
  log(LogLevel::info, "hello");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "laconic info: hello\n");
}

TEST_F(Log, FileSinkAppends) {
  const std::string path = testing::TempDir() + "laconic_log_test.log";
  std::filesystem::remove(path);
  for (const char* message : {"one", "two"}) {
    Config c;
    c.log_level = LogLevel::info;
    c.log_path = path;
    c.apply_log();
    log(LogLevel::info, message);
  }
  set_log(LogLevel::off, {});
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "laconic info: one\nlaconic info: two\n");
  std::filesystem::remove(path);
}

TEST_F(Log, FileSinkThatCannotOpen) {
  try {
    (void)file_sink("/nonexistent/folder/x.log");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::io);
    EXPECT_NE(std::string(e.what()).find("/nonexistent/folder/x.log"), std::string::npos);
  }
}

TEST_F(Log, ThreadsShareOneSink) {
  collect(LogLevel::debug);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) log(LogLevel::debug, std::to_string(t));
      set_log_name("");  // concurrently with log(): what the sanitizer is to look at
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(lines.size(), 400U);
}

}  // namespace
}  // namespace laconic::log_test
