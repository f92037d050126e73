#include "report/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "report/streams.h"

namespace laconic::app {
namespace {
constexpr int bar_width = 32;
constexpr auto first_draw = std::chrono::milliseconds(500);
constexpr auto redraw = std::chrono::milliseconds(100);
}  // namespace

Progress::Progress(std::string label, std::uint64_t total, bool enabled)
    : label_(std::move(label)),
      total_(std::max<std::uint64_t>(total, 1)),
      enabled_(enabled && ::isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + first_draw) {}

Progress::~Progress() {
  if (drawn_) complain("\r\033[K");
}

void Progress::advance(std::uint64_t units) {
  done_ = std::min(done_ + units, total_);
  draw();
}

void Progress::label(const std::string& text) {
  label_ = printable(text);
  draw();
}

void Progress::draw() {
  const auto now = std::chrono::steady_clock::now();
  if (!enabled_ || now < next_) return;
  next_ = now + redraw;
  drawn_ = true;
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  const int filled = static_cast<int>(share * bar_width);
  complain(fmt::format("\r\033[K{:<28.28} [{:<{}}] {:3.0f} %", label_,
                       std::string(static_cast<std::size_t>(filled), '#'), bar_width, share * 100));
}

}  // namespace laconic::app
