#include "preload/tally.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace laconic::preload {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const TallyLine& l) {
  return {{"calls", l.calls},
          {"plain_calls", l.plain_calls},
          {"original_bytes", l.original_bytes},
          {"wire_bytes", l.wire_bytes},
          {"seconds", l.seconds},
          {"codec_seconds", l.codec_seconds},
          {"saved_seconds", l.saved_seconds},
          {"worst_error_over_bound", l.worst_error},
          {"verified_elements", l.verified}};
}

TallyLine line_from(const Json& j) {
  TallyLine l;
  j.at("calls").get_to(l.calls);
  j.at("plain_calls").get_to(l.plain_calls);
  j.at("original_bytes").get_to(l.original_bytes);
  j.at("wire_bytes").get_to(l.wire_bytes);
  j.at("seconds").get_to(l.seconds);
  j.at("codec_seconds").get_to(l.codec_seconds);
  j.at("saved_seconds").get_to(l.saved_seconds);
  j.at("worst_error_over_bound").get_to(l.worst_error);
  j.at("verified_elements").get_to(l.verified);
  return l;
}

/// "64 KiB": the smallest size of a class.
std::string class_name(int bits) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  const int exponent = std::max(bits - 1, 0);
  const auto unit = static_cast<std::size_t>(std::min(exponent / 10, 4));
  return std::to_string(std::uint64_t{1} << (static_cast<std::size_t>(exponent) - unit * 10)) + " " + units[unit];
}

double ratio_of(const TallyLine& l) {
  return l.wire_bytes == 0 ? 1 : static_cast<double>(l.original_bytes) / static_cast<double>(l.wire_bytes);
}

std::string row(const std::string& collective, const std::string& size, const TallyLine& l) {
  char text[256];
  std::snprintf(text, sizeof text, "  %-15s %9s %9llu %9llu %12.1f %12.1f %7.2f %9.3f %9.3f %9.3f", collective.c_str(),
                size.c_str(), static_cast<unsigned long long>(l.calls), static_cast<unsigned long long>(l.plain_calls),
                static_cast<double>(l.original_bytes) / 1e6, static_cast<double>(l.wire_bytes) / 1e6, ratio_of(l),
                l.seconds, l.codec_seconds, l.saved_seconds);
  std::string out = text;
  if (l.verified != 0) {
    std::snprintf(text, sizeof text, "  error/bound %.3f", l.worst_error);
    out += text;
  }
  return out + "\n";
}

std::string first_line(const Heading& h) {
  if (h.ranks != 0) return std::to_string(h.ranks) + " ranks, " + h.policy + "; all ranks together";
  return (h.process.empty() ? "this process" : "process " + h.process) + ", " + h.policy + ", " + h.library;
}

/// "left_to_mpi"
std::string left_to(std::string library) {
  std::ranges::transform(library, library.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  return "left_to_" + library;
}

void add_counts(std::map<std::string, std::uint64_t>& to, const Json& from) {
  for (const auto& [reason, calls] : from.items()) to[reason] += calls.get<std::uint64_t>();
}

}  // namespace

void TallyLine::merge(const TallyLine& other) {
  calls += other.calls;
  plain_calls += other.plain_calls;
  original_bytes += other.original_bytes;
  wire_bytes += other.wire_bytes;
  seconds += other.seconds;
  codec_seconds += other.codec_seconds;
  saved_seconds += other.saved_seconds;
  worst_error = std::max(worst_error, other.worst_error);
  verified += other.verified;
}

void Tally::add(Collective collective, std::uint64_t bytes, const Report& report, double plain_seconds) {
  TallyLine line{.calls = 1};
  line.plain_calls = report.stats.plain_calls;
  line.original_bytes = report.stats.original_bytes;
  line.wire_bytes = report.stats.wire_bytes;
  line.seconds = report.stats.total_seconds();
  line.codec_seconds = report.stats.codec_seconds;
  if (line.plain_calls == 0 && plain_seconds > 0) line.saved_seconds = plain_seconds - line.seconds;
  line.verified = report.verified;
  if (report.verified != 0 && report.achieved_error > 0) line.worst_error = report.achieved_error / report.result_bound;
  const std::lock_guard lock(mutex_);
  lines_[{collective, std::bit_width(bytes)}].merge(line);
  for (const auto& [reason, calls] : report.stats.fallbacks) fallbacks_[reason] += calls;
}

void Tally::pass(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ++passed_[reason];
}

std::vector<std::uint8_t> Tally::pack() const {
  const std::lock_guard lock(mutex_);
  Json lines = Json::array();
  for (const auto& [key, line] : lines_)
    lines.push_back({{"collective", static_cast<int>(key.first)}, {"bits", key.second}, {"line", json_of(line)}});
  return Json::to_cbor(Json{{"lines", lines}, {"passed", passed_}, {"fallbacks", fallbacks_}});
}

void Tally::merge(const std::vector<std::uint8_t>& packed) {
  const Json j = Json::from_cbor(packed);
  const std::lock_guard lock(mutex_);
  for (const Json& l : j.at("lines"))
    lines_[{static_cast<Collective>(l.at("collective").get<int>()), l.at("bits").get<int>()}].merge(
        line_from(l.at("line")));
  add_counts(passed_, j.at("passed"));
  add_counts(fallbacks_, j.at("fallbacks"));
}

TallyLine Tally::total() const {
  const std::lock_guard lock(mutex_);
  TallyLine sum;
  for (const auto& [key, line] : lines_) sum.merge(line);
  return sum;
}

TallyLine Tally::of(Collective collective) const {
  const std::lock_guard lock(mutex_);
  TallyLine sum;
  for (const auto& [key, line] : lines_)
    if (key.first == collective) sum.merge(line);
  return sum;
}

std::string Tally::to_text(const Heading& h) const {
  const TallyLine sum = total();
  const std::lock_guard lock(mutex_);
  std::string out = "laconic: " + first_line(h) + "\n";
  out +=
      "  collective        size >=     calls     plain  original MB      wire MB   ratio   seconds     codec     "
      "saved\n";
  for (const auto& [key, line] : lines_) out += row(name_of(key.first), class_name(key.second), line);
  if (lines_.size() != 1) out += row("all", "", sum);
  for (const auto& [reason, calls] : passed_)
    out += "  left as they were: " + std::to_string(calls) + " calls: " + reason + "\n";
  for (const auto& [reason, calls] : fallbacks_)
    out += "  not by the usual way: " + std::to_string(calls) + " calls: " + reason + "\n";
  for (const std::string& name : h.unknown) out += "  " + name + " is set, but Laconic has no such variable\n";
  return out;
}

std::string Tally::to_json(const Heading& h) const {
  const TallyLine sum = total();
  const std::lock_guard lock(mutex_);
  Json lines = Json::array();
  for (const auto& [key, line] : lines_) {
    Json one{{"collective", name_of(key.first)},
             {"min_bytes", key.second == 0 ? 0 : std::uint64_t{1} << (key.second - 1)}};
    one.update(json_of(line));
    one["ratio"] = ratio_of(line);
    lines.push_back(std::move(one));
  }
  Json all = json_of(sum);
  all["ratio"] = ratio_of(sum);
  Json report;
  report["ranks"] = h.ranks;
  if (!h.process.empty()) report["process"] = h.process;
  if (h.lowest_rank >= 0) report["lowest_rank"] = h.lowest_rank;
  report.update(Json{{"policy", h.policy},
                     {"total", all},
                     {"lines", lines},
                     {left_to(h.library), passed_},
                     {"fallbacks", fallbacks_},
                     {"unknown_variables", h.unknown}});
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";  // names of files need not be UTF-8
}

}  // namespace laconic::preload
