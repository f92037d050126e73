// How often ranks ask each other about calls of which each knows only its own part.
#pragma once

#include <cstdint>
#include <limits>

namespace laconic {

/// Of calls of one kind over one communicator: where nothing has come of asking some times in a row, rarer and rarer,
/// at uneven distances, so that of calls that take turns (a small gatherv, then a large one) each is met. What is left
/// alone is looked at, too: where it has a size of which nothing is known, the rank says so with the next question, and
/// all have more patience. The same decisions on all ranks, as they make the same calls. (Ours.)
class Asking {
 public:
  explicit Asking(unsigned patience = 16) : patience_(patience) {}
  /// Whether the call is asked about; where it is not, it is counted. `bytes`: of this rank's part, here and below.
  bool is_due(std::uint64_t bytes = 0);
  /// To be said with the question: whether calls have been left alone since the last one that are of another size than
  /// all that came to nothing, and all that this has been said of.
  bool take_news();
  /// How many were left alone since this was asked for.
  unsigned take_left_alone();
  /// A rank has news.
  void heard_news();
  /// What became of the call.
  void came_to_something(std::uint64_t bytes);
  /// The next ones may be left alone, but no more than `most`. 0: it says nothing of them.
  void came_to_nothing(std::uint64_t bytes = 0, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

 private:
  unsigned patience_;     ///< times in a row
  unsigned in_vain_ = 0;  ///< times in a row until now
  unsigned times_ = 0;
  unsigned left_ = 0;         ///< calls that are not asked about
  unsigned left_alone_ = 0;   ///< that were not
  std::uint64_t passed_ = 0;  ///< a bit for each size, up to twice as much, of those
  std::uint64_t known_ = 0;   ///< and of those that are no news
};

}  // namespace laconic
