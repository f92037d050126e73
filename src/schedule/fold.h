// How power-of-two schedules serve any number of ranks: of the first 2 * extra ranks, each even one hands its data to
// the odd one after it, which acts for both; the others act for themselves. (Thakur, Rabenseifner, Gropp: Optimization
// of collective communication operations in MPICH, 2005.)
#pragma once

#include <bit>
#include <vector>

#include "schedule/schedule.h"

namespace laconic::schedule {

struct Fold {
  explicit Fold(int ranks)
      : acting(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), extra(ranks - acting) {}

  /// True for a rank whose data another rank acts for: rank + 1.
  [[nodiscard]] bool folded(int rank) const { return rank < 2 * extra && rank % 2 == 0; }
  /// True for a rank that acts for rank - 1 too.
  [[nodiscard]] bool acts_for_two(int rank) const { return rank < 2 * extra && rank % 2 == 1; }
  /// Among the acting ranks 0 .. acting - 1.
  [[nodiscard]] int virtual_of(int rank) const { return rank < 2 * extra ? rank / 2 : rank - extra; }
  [[nodiscard]] int rank_of(int v) const { return v < extra ? 2 * v + 1 : v + extra; }
  /// Virtual ranks [0, v) act for ranks [0, first_of(v)).
  [[nodiscard]] int first_of(int v) const { return v < extra ? 2 * v : v + extra; }

  int acting;  ///< a power of two
  int extra;   ///< ranks beyond it
};

/// Appends a transfer of every block that virtual ranks [first, end) act for.
void blocks_of(std::vector<Transfer>& list, const Fold& fold, int peer, int first, int end,
               Combine how = Combine::copy);

/// Appends log2(acting) steps after which the acting ranks have the blocks of all, if each had those it acts for.
void double_up(Program& p, const Fold& fold);

}  // namespace laconic::schedule
