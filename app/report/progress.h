// A progress bar on stderr for work that takes a while: drawn only on a terminal, never with --quiet or --json.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace laconic::app {

class Progress {
 public:
  /// `total` in units of the caller's choice. Nothing is drawn in the first half second, so short work stays silent.
  Progress(std::string label, std::uint64_t total, bool enabled);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t units);
  /// Replaces the text before the bar.
  void label(const std::string& text);

 private:
  void draw();

  std::string label_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace laconic::app
