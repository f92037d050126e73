// Who talks to whom in which step. Pure index arithmetic: no buffers, no I/O, so that a schedule can be checked
// symbolically, costed, simulated, and run by the CPU path and the GPU path alike. Adding one is adding one file.
#pragma once

#include <cstdint>
#include <vector>

namespace laconic::schedule {

/// What a receiver does with a block that arrives.
enum class Combine : std::uint8_t {
  copy,    ///< it replaces what the receiver holds of that block
  reduce,  ///< it is added to what the receiver holds of that block
};

/// One block that crosses from one rank to another.
struct Transfer {
  int peer = 0;
  int block = 0;
  Combine how = Combine::copy;  ///< of a receive; meaningless for a send
  /// The elements themselves travel, as between ranks that share memory: the sender's final result of the block, if it
  /// keeps that, else what it brings. Who receives plain elements of a result can pass them on in no other form.
  bool plain = false;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// Sends of a step depend only on receives of earlier steps. Two ranks list what passes between them in a step in the
/// same order on both sides.
struct Step {
  std::vector<Transfer> sends;
  std::vector<Transfer> recvs;
};

/// All that one rank does. The data is `blocks` blocks; what a block is (a share of one array, a rank's contribution, a
/// message for one rank) is the collective's business.
struct Program {
  int ranks = 1;
  int rank = 0;
  int blocks = 1;
  std::vector<bool> operand;  ///< per block: this rank brings a part of its own
  std::vector<bool> result;   ///< per block: this rank keeps what it holds in the end
  /// A result is what arrived last, before this rank's own part is added to it (an exclusive scan).
  bool exclusive = false;
  /// Nobody awaits anything, however indirectly, from one whom it sends to. Who sends plain elements, which may come
  /// about faster than they are taken, can then wait.
  bool one_way = false;
  std::vector<Step> steps;
};

/// A program of `steps` steps in which nothing happens yet, no block is brought and none is kept.
Program empty_program(int ranks, int rank, int blocks, int steps = 0);

/// first, then second: what first leaves behind is what second starts from. Results are second's.
Program concatenate(Program first, const Program& second);

/// A program over only those of its blocks that its rank brings, keeps or passes on; and which those were, ascending.
struct Narrowed {
  Program program;
  std::vector<int> blocks;
};
Narrowed narrow(Program program);

}  // namespace laconic::schedule
