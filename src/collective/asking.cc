#include "collective/asking.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace laconic {
namespace {

constexpr unsigned most_patience = 64;   // what comes once in so many calls is met each time, having been met once
constexpr unsigned most_doublings = 10;  // of the calls between two that are asked about

std::uint64_t size_bit(std::uint64_t bytes) {
  return std::uint64_t{1} << std::min<int>(63, static_cast<int>(std::bit_width(bytes)));
}

}  // namespace

bool Asking::is_due(std::uint64_t bytes) {
  if (left_ == 0) return true;
  --left_;
  ++left_alone_;
  passed_ |= size_bit(bytes);
  return false;
}

bool Asking::take_news() {
  const std::uint64_t news = std::exchange(passed_, 0) & ~known_;
  known_ |= news;  // if none of these is met soon, they are too rare to be met at all
  return news != 0;
}

unsigned Asking::take_left_alone() { return std::exchange(left_alone_, 0); }

void Asking::heard_news() {
  if (in_vain_ >= patience_) patience_ = std::min(4 * patience_, most_patience);
  in_vain_ = 0;
}

void Asking::came_to_something(std::uint64_t bytes) {
  heard_news();
  ++times_;
  known_ &= ~size_bit(bytes);
}

void Asking::came_to_nothing(std::uint64_t bytes, std::uint64_t most) {
  if (most == 0) return;
  ++times_;
  known_ |= size_bit(bytes);
  if (++in_vain_ < patience_) return;
  const unsigned rare = 1U << std::min((in_vain_ - patience_) / 4 + 1, most_doublings);
  const auto longest = static_cast<unsigned>(std::min<std::uint64_t>(rare, most));
  left_ = longest - (times_ * 2654435761U >> 16) % ((longest + 1) / 2);  // Knuth's multiplicative hash
}

}  // namespace laconic
