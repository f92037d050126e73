// Plain-text tables for people.
#pragma once

#include <string>
#include <vector>

namespace laconic::app {

/// The first column is aligned left, the others right. Rows may be shorter than the head.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  /// Cells may be any names.
  void row(std::vector<std::string> cells);
  /// A line across the table.
  void rule() { rows_.emplace_back(); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

/// "12.3 MB" (decimal units).
std::string human_bytes(double bytes);
/// "1.23 s", "4.56 ms", "7.89 us".
std::string human_time(double seconds);
/// Three significant digits, without an exponent where it stays readable.
std::string short_number(double value);

}  // namespace laconic::app
