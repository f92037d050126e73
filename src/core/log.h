// Messages of the library to whoever asked for them. Silent by default: a library does not write to its caller's
// streams. Thread safe. Building a message costs something, so callers ask log_enabled() first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace laconic {

enum class LogLevel : std::uint8_t { off = 0, error = 1, warning = 2, info = 3, debug = 4 };

/// "off", "error", "warning", "info", "debug".
std::string_view name_of(LogLevel level);

/// Called once a message, one call at a time; must not log itself.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// Sends messages up to `level` to `sink`; an empty sink turns logging off whatever the level.
void set_log(LogLevel level, LogSink sink);

/// Put before every message, e.g. "rank 3"; empty for nothing.
void set_log_name(std::string name);

/// True when a message of this level would reach a sink.
bool log_enabled(LogLevel level) noexcept;

void log(LogLevel level, std::string_view message);

/// A sink that writes "laconic info: message" lines to standard error.
LogSink stderr_sink();

/// A sink that appends such lines to a file, flushed one by one so that ranks may share it. Throws Error(io).
LogSink file_sink(const std::string& path);

}  // namespace laconic
