// Which ranks share a node, for schedules of two levels.
#pragma once

#include <cstddef>
#include <vector>

namespace laconic::schedule {

class Nodes {
 public:
  /// For each rank a number that it has in common with the ranks of its node. Nodes are then counted from 0, in order
  /// of their lowest ranks.
  explicit Nodes(const std::vector<int>& numbers);

  [[nodiscard]] int ranks() const { return static_cast<int>(node_of_.size()); }
  [[nodiscard]] int count() const { return static_cast<int>(members_.size()); }
  /// Ranks on the node that has most of them.
  [[nodiscard]] int most() const;
  [[nodiscard]] int of(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  /// In ascending order.
  [[nodiscard]] const std::vector<int>& on(int node) const { return members_[static_cast<std::size_t>(node)]; }
  /// How often a ring of the ranks in order leaves the node that it leaves most often.
  [[nodiscard]] int exits() const;

  /// Who looks after part `part` of the data on a node. There are most() parts; a node deals them out evenly, in order.
  [[nodiscard]] int keeper(int node, int part) const;

 private:
  std::vector<int> node_of_;
  std::vector<std::vector<int>> members_;
};

}  // namespace laconic::schedule
