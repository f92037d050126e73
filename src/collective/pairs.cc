#include "collective/pairs.h"

namespace laconic {

Pairs pairs_of(const schedule::Narrowed& narrowed, const std::vector<ConstArray>& out, const std::vector<MutArray>& in,
               std::size_t passed_on) {
  const std::size_t n = out.size();
  const auto me = static_cast<std::size_t>(narrowed.program.rank);
  const DType dtype = out[me].dtype;
  Pairs pairs;
  for (const int block : narrowed.blocks) {
    const std::size_t from = static_cast<std::size_t>(block) / n, to = static_cast<std::size_t>(block) % n;
    pairs.operands.push_back(from == me ? out[to] : ConstArray{nullptr, 0, dtype});
    pairs.results.push_back(to == me ? in[from] : MutArray{nullptr, 0, dtype});
    pairs.counts.push_back(from == me ? out[to].count : to == me ? in[from].count : passed_on);
  }
  return pairs;
}

}  // namespace laconic
