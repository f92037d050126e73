// Exchanges in which every rank has something for every rank: what a rank must know of them is its own blocks, not all
// n * n.
#pragma once

#include <cstddef>
#include <vector>

#include "core/array.h"
#include "schedule/schedule.h"

namespace laconic {

/// Of each block of a narrowed program whose blocks were from * n + to: elements, what this rank brings, where it wants
/// what comes.
struct Pairs {
  std::vector<std::size_t> counts;
  std::vector<ConstArray> operands;
  std::vector<MutArray> results;
};

/// out[to] goes, in[from] comes; `passed_on`: elements of a block that this rank only passes on.
Pairs pairs_of(const schedule::Narrowed& narrowed, const std::vector<ConstArray>& out, const std::vector<MutArray>& in,
               std::size_t passed_on);

}  // namespace laconic
