#include "schedule/fold.h"

namespace laconic::schedule {

void blocks_of(std::vector<Transfer>& list, const Fold& fold, int peer, int first, int end, Combine how) {
  for (int block = fold.first_of(first); block < fold.first_of(end); ++block) list.push_back({peer, block, how});
}

void double_up(Program& p, const Fold& fold) {
  for (int distance = 1; distance < fold.acting; distance *= 2) {
    p.steps.emplace_back();
    if (fold.folded(p.rank)) continue;
    const int v = fold.virtual_of(p.rank);
    const int mine = v & ~(distance - 1);  // first of those whose blocks this rank has
    const int theirs = mine ^ distance;
    const int peer = fold.rank_of(v ^ distance);
    blocks_of(p.steps.back().sends, fold, peer, mine, mine + distance);
    blocks_of(p.steps.back().recvs, fold, peer, theirs, theirs + distance);
  }
}

}  // namespace laconic::schedule
