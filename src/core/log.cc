#include "core/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "core/error.h"

namespace laconic {
namespace {

struct Destination {
  std::mutex mutex;
  LogSink sink;
  std::string name;
};

std::atomic<LogLevel> threshold{LogLevel::off};

Destination& destination() {
  static auto* d = new Destination;  // never destroyed: other static destructors may still log
  return *d;
}

std::string line_of(LogLevel level, std::string_view message) {
  std::string line = "laconic ";
  return line.append(name_of(level)).append(": ").append(message).append("\n");
}

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::off:
      return "off";
    case LogLevel::error:
      return "error";
    case LogLevel::warning:
      return "warning";
    case LogLevel::info:
      return "info";
    case LogLevel::debug:
      return "debug";
  }
  return "?";
}

void set_log(LogLevel level, LogSink sink) {
  Destination& d = destination();
  const std::lock_guard lock(d.mutex);
  threshold.store(sink ? level : LogLevel::off, std::memory_order_relaxed);
  d.sink = std::move(sink);
}

void set_log_name(std::string name) {
  Destination& d = destination();
  const std::lock_guard lock(d.mutex);
  d.name = std::move(name);
}

bool log_enabled(LogLevel level) noexcept {
  return level != LogLevel::off && level <= threshold.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message) {
  if (!log_enabled(level)) return;
  Destination& d = destination();
  const std::lock_guard lock(d.mutex);
  if (!d.sink) return;
  if (d.name.empty()) {
    d.sink(level, message);
  } else {
    d.sink(level, d.name + ": " + std::string(message));
  }
}

LogSink stderr_sink() {
  return [](LogLevel level, std::string_view message) {
    const std::string line = line_of(level, message);
    std::fwrite(line.data(), 1, line.size(), stderr);
  };
}

LogSink file_sink(const std::string& path) {
  // O_NONBLOCK: a pipe that nobody reads is an error, and no reason to wait.
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd >= 0) ::fcntl(fd, F_SETFL, O_APPEND);
  std::shared_ptr<std::FILE> file(fd < 0 ? nullptr : ::fdopen(fd, "a"), [](std::FILE* f) {
    if (f != nullptr) std::fclose(f);
  });
  if (!file) throw Error(Code::io, "cannot open the log file '" + path + "': " + std::strerror(errno));
  return [file](LogLevel level, std::string_view message) {
    const std::string line = line_of(level, message);
    std::fwrite(line.data(), 1, line.size(), file.get());
    std::fflush(file.get());
  };
}

}  // namespace laconic
