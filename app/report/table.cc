#include "report/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "report/streams.h"

namespace laconic::app {

void Table::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> width(head_.size(), 0);
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size() && i < width.size(); ++i) width[i] = std::max(width[i], cells[i].size());
  };
  measure(head_);
  for (const auto& r : rows_) measure(r);
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size() && i < width.size(); ++i)
      text += i == 0 ? fmt::format("{:<{}}", cells[i], width[i]) : fmt::format("  {:>{}}", cells[i], width[i]);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  };
  std::size_t total = 0;
  for (std::size_t i = 0; i < width.size(); ++i) total += width[i] + (i == 0 ? 0 : 2);
  const std::string rule_text = std::string(total, '-') + "\n";
  line(head_);
  out += rule_text;
  for (const auto& r : rows_) {
    if (r.empty()) {
      out += rule_text;
    } else {
      line(r);
    }
  }
  return out;
}

std::string human_bytes(double bytes) {
  static constexpr std::array<const char*, 5> units = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= (unit == 0 ? 1000 : 999.5) && unit + 1 < units.size()) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string human_time(double seconds) {
  // Three digits: what they round up is the next unit's.
  if (seconds >= 0.9995) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 0.9995e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const double size = std::fabs(value);
  if (size >= 100 && size < 1e6) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

}  // namespace laconic::app
