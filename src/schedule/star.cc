#include "schedule/star.h"

namespace laconic::schedule::star {
namespace {

/// Every other rank with its own block, beginning after the root.
std::vector<Transfer> everyone_else(int ranks, int root) {
  std::vector<Transfer> list;
  for (int i = 1; i < ranks; ++i) list.push_back({.peer = (root + i) % ranks, .block = (root + i) % ranks});
  return list;
}

}  // namespace

Program scatter(int ranks, int rank, int root) {
  Program p = empty_program(ranks, rank, ranks, 1);
  p.operand.assign(static_cast<std::size_t>(ranks), rank == root);
  p.result[static_cast<std::size_t>(rank)] = true;
  if (rank == root) p.steps[0].sends = everyone_else(ranks, root);
  if (rank != root) p.steps[0].recvs.push_back({.peer = root, .block = rank});
  return p;
}

Program gather(int ranks, int rank, int root) {
  Program p = empty_program(ranks, rank, ranks, 1);
  p.operand[static_cast<std::size_t>(rank)] = true;
  p.result.assign(static_cast<std::size_t>(ranks), rank == root);
  if (rank == root) p.steps[0].recvs = everyone_else(ranks, root);
  if (rank != root) p.steps[0].sends.push_back({.peer = root, .block = rank});
  return p;
}

}  // namespace laconic::schedule::star
