#include "core/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "core/error.h"

namespace laconic {
namespace {

constexpr std::string_view file_prefix = "file:";
constexpr std::array simds = {Simd::automatic, Simd::scalar, Simd::portable, Simd::avx2, Simd::avx512, Simd::avx512x};
constexpr std::array modes = {Mode::automatic, Mode::compressed, Mode::plain};
constexpr std::array switches = {Switch::automatic, Switch::on, Switch::off};
constexpr std::array on_or_off = {Switch::on, Switch::off};
constexpr std::array levels = {LogLevel::off, LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug};

[[noreturn]] void refuse(const char* name, std::string_view value, const std::string& want) {
  throw Error(Code::invalid_argument, std::string(name) + "='" + std::string(value) + "': want " + want);
}

/// As it is now: a program may go to another folder before its report is written.
std::string whole_path(const std::string& path) {
  std::error_code no_folder;
  const std::filesystem::path whole = std::filesystem::absolute(path, no_folder);
  return no_folder ? path : whole.string();
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Bound parse_bound(const char* name, const std::string& text) {
  try {
    return Bound::parse(text);
  } catch (const Error& e) {
    throw Error(e.code(), std::string(name) + ": " + e.what());
  }
}

int parse_threads(const char* name, const std::string& text) {
  const auto n = number<int>(text);
  if (!n || *n < 1 || *n > most_threads) refuse(name, text, "a whole number from 1 to " + std::to_string(most_threads));
  return *n;
}

bool parse_switch(const char* name, const std::string& text) {
  if (text != "0" && text != "1") refuse(name, text, "0 or 1");
  return text == "1";
}

double parse_seconds(const char* name, const std::string& text) {
  const auto s = number<double>(text);
  if (!s || !std::isfinite(*s) || std::signbit(*s)) refuse(name, text, "seconds, such as 30 or 0.5 (0 waits for ever)");
  return *s;
}

template <typename Enum, std::size_t n>
Enum parse_name(const char* name, std::string_view text, const std::array<Enum, n>& all, std::string_view also = "") {
  std::string want = "one of";
  for (Enum e : all) {
    if (name_of(e) == text) return e;
    want.append(" ").append(name_of(e));
  }
  refuse(name, text, want.append(also));
}

void parse_log(const char* name, std::string_view text, Config& out) {
  out.log_level = LogLevel::info;
  if (!text.starts_with(file_prefix)) {
    const std::size_t comma = text.find(',');
    out.log_level = parse_name(name, text.substr(0, comma), levels, ", file:PATH, or LEVEL,file:PATH");
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
  if (!text.starts_with(file_prefix) || text == file_prefix) refuse(name, text, "file:PATH after the level");
  out.log_path = text.substr(file_prefix.size());
}

/// Variables of the command and of the benchmarks, which are not in Config.
std::set<std::string, std::less<>> read_by_tools() { return {"LACONIC_BENCH_MODES", "LACONIC_DATA"}; }

/// Sorted. Empty ones count as not set.
std::vector<std::string> set_but_not_among(const std::set<std::string, std::less<>>& known) {
  std::vector<std::string> names;
  for (char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    if (!name.starts_with("LACONIC_") || equals == std::string_view::npos || equals + 1 == text.size()) continue;
    if (!known.contains(name)) names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string_view name_of(Simd simd) {
  switch (simd) {
    case Simd::automatic:
      return "auto";
    case Simd::scalar:
      return "scalar";
    case Simd::portable:
      return "portable";
    case Simd::avx2:
      return "avx2";
    case Simd::avx512:
      return "avx512";
    case Simd::avx512x:
      return "avx512x";
  }
  return "?";
}

std::string_view name_of(Switch s) { return s == Switch::automatic ? "auto" : s == Switch::on ? "on" : "off"; }

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::automatic:
      return "auto";
    case Mode::compressed:
      return "compressed";
    case Mode::plain:
      return "plain";
  }
  return "?";
}

Config Config::from(const Lookup& lookup) {
  Config out;
  const auto with = [&lookup](const char* name, const auto& use) {
    const auto value = lookup(name);
    if (value && !value->empty()) use(name, *value);
  };
  with("LACONIC_BOUND", [&](auto* name, auto& text) { out.bound = parse_bound(name, text); });
  with("LACONIC_THREADS", [&](auto* name, auto& text) { out.threads = parse_threads(name, text); });
  with("LACONIC_MODE", [&](auto* name, auto& text) { out.mode = parse_name(name, text, modes); });
  with("LACONIC_CACHE", [&](auto*, auto& text) { out.cache = text == "off" ? text : whole_path(text); });
  with("LACONIC_VERIFY", [&](auto* name, auto& text) { out.verify = parse_switch(name, text); });
  with("LACONIC_CHECK", [&](auto* name, auto& text) { out.check = parse_switch(name, text); });
  with("LACONIC_NONBLOCKING", [&](auto* name, auto& text) { out.nonblocking = parse_name(name, text, switches); });
  with("LACONIC_POLICY", [&](auto*, auto& text) { out.policy = text; });
  with("LACONIC_REPORT", [&](auto*, auto& text) { out.report = text == "summary" ? text : whole_path(text); });
  with("LACONIC_TIMEOUT", [&](auto* name, auto& text) { out.timeout_seconds = parse_seconds(name, text); });
  with("LACONIC_SIMD", [&](auto* name, auto& text) { out.simd = parse_name(name, text, simds); });
  with("LACONIC_NCCL_SOCKETS",
       [&](auto* name, auto& text) { out.nccl_sockets = parse_name(name, text, on_or_off) == Switch::on; });
  with("LACONIC_LOG", [&](auto* name, auto& text) { parse_log(name, text, out); });
  return out;
}

Config Config::from_environment() {
  std::set<std::string, std::less<>> known = read_by_tools();
  Config out = from([&known](const char* name) -> std::optional<std::string> {
    known.insert(name);
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing in Laconic changes the environment
    if (value == nullptr) return std::nullopt;
    return value;
  });
  out.unknown = set_but_not_among(known);
  return out;
}

void Config::apply_log() const {
  if (log_level == LogLevel::off) {
    set_log(LogLevel::off, {});
  } else {
    set_log(log_level, log_path.empty() ? stderr_sink() : file_sink(log_path));
  }
}

const Config& config() {
  static const Config parsed = [] {
    Config c = Config::from_environment();
    if (c.log_level != LogLevel::off) c.apply_log();
    for (const std::string& name : c.unknown)
      log(LogLevel::warning, name + " is set, but Laconic has no such variable");
    return c;
  }();
  return parsed;
}

}  // namespace laconic
