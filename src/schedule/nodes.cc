#include "schedule/nodes.h"

#include <algorithm>
#include <map>

namespace laconic::schedule {

Nodes::Nodes(const std::vector<int>& numbers) {
  std::map<int, int> found;
  for (const int number : numbers) {
    const int rank = ranks();
    const int node = found.try_emplace(number, count()).first->second;
    if (node == count()) members_.emplace_back();
    members_[static_cast<std::size_t>(node)].push_back(rank);
    node_of_.push_back(node);
  }
}

int Nodes::most() const {
  std::size_t most = 0;
  for (const auto& ranks : members_) most = std::max(most, ranks.size());
  return static_cast<int>(most);
}

int Nodes::exits() const {
  std::vector<int> exits(members_.size());
  for (int rank = 0; rank < ranks(); ++rank) {
    if (of(rank) != of((rank + 1) % ranks())) ++exits[static_cast<std::size_t>(of(rank))];
  }
  return *std::max_element(exits.begin(), exits.end());
}

int Nodes::keeper(int node, int part) const {
  const auto& ranks = on(node);
  return ranks[static_cast<std::size_t>(part) * ranks.size() / static_cast<std::size_t>(most())];
}

}  // namespace laconic::schedule
