// Two levels: plain elements pass between the ranks of a node, messages between nodes. The data is cut in parts, one
// for each rank of the largest node; each node has a keeper for each part (Nodes::keeper), and the keepers of a part
// run a schedule of one level among themselves, so that every link between nodes carries the data once, whatever the
// number of ranks behind it. Nodes may have different numbers of ranks, in any order.
#pragma once

#include "schedule/nodes.h"
#include "schedule/schedule.h"

namespace laconic::schedule::two_level {

/// A schedule among nodes, such as ring::allreduce.
using Between = Program (*)(int nodes, int node);
/// Such as chain::bcast.
using RootedBetween = Program (*)(int nodes, int node, int root);

/// Every rank brings and ends with all blocks. slabs * most() * nodes of them, in that order; `between` must have a
/// block for each node. In each slab keepers collect the operands of their node, run `between`, and hand the sums out,
/// while slabs before and after are in other stages of that.
Program allreduce(const Nodes& nodes, int rank, int slabs, Between between);

/// One block, the root brings it; every rank ends with it. One rank on each node gets it as a message, and the others
/// along a chain.
Program bcast(const Nodes& nodes, int rank, int root, RootedBetween between);

/// Block r is rank r's; every rank ends with all of them. A block goes as a message from node to node, around a ring of
/// them, to one rank on each (the blocks of a node to different ones), which hands it out to the others.
Program allgather(const Nodes& nodes, int rank);

/// slabs * most() blocks, every rank brings them, the root ends with their sums. The keepers on the root's node send it
/// what they have in the end, as a message.
Program reduce(const Nodes& nodes, int rank, int root, int slabs, RootedBetween between);

}  // namespace laconic::schedule::two_level
