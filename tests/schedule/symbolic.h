// Runs the programs of all ranks symbolically: what a rank holds of a block is the multiset of ranks whose contribution
// is in it. Proves a schedule complete (nothing missing), correct (nothing twice) and free of deadlock.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace laconic::schedule::symbolic {

/// [rank][block]: how often each rank's contribution is in it; empty map: nothing held.
using Contributions = std::map<int, int>;
using State = std::vector<std::vector<Contributions>>;

struct Outcome {
  State holds;          ///< what ranks hold in the end
  State arrived;        ///< what arrived last, as it came
  std::string problem;  ///< empty when the programs fit together
};

inline std::string at(int step, int rank) {
  return "step " + std::to_string(step) + ", rank " + std::to_string(rank) + ": ";
}

/// Checks what does not depend on the other ranks. Returns the problem, or "".
inline std::string check_alone(const Program& p, int ranks, int rank) {
  if (p.ranks != ranks || p.rank != rank) return at(0, rank) + "program for another rank";
  if (p.operand.size() != static_cast<std::size_t>(p.blocks) || p.result.size() != p.operand.size()) {
    return at(0, rank) + "operand or result does not list every block";
  }
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    for (const auto* list : {&p.steps[s].sends, &p.steps[s].recvs}) {
      for (const Transfer& t : *list) {
        const bool ok = t.peer >= 0 && t.peer < ranks && t.peer != rank && t.block >= 0 && t.block < p.blocks;
        if (!ok) return at(static_cast<int>(s), rank) + "transfer with no such peer or block";
      }
    }
  }
  return "";
}

/// Every receive of the step must find its message: same pair, same block, same place in the order of that pair.
inline std::string run_step(const std::vector<Program>& programs, std::size_t s, State& holds, State& arrived) {
  std::map<std::pair<int, int>, std::vector<std::pair<int, Contributions>>> wires;  // (from, to) -> messages in order
  for (const Program& p : programs) {
    if (s >= p.steps.size()) continue;
    for (const Transfer& t : p.steps[s].sends) {
      const auto& held = holds[static_cast<std::size_t>(p.rank)][static_cast<std::size_t>(t.block)];
      if (held.empty())
        return at(static_cast<int>(s), p.rank) + "sends block " + std::to_string(t.block) + ", has none";
      wires[{p.rank, t.peer}].emplace_back(t.block, held);
    }
  }
  for (const Program& p : programs) {
    if (s >= p.steps.size()) continue;
    for (const Transfer& t : p.steps[s].recvs) {
      auto& wire = wires[{t.peer, p.rank}];
      if (wire.empty() || wire.front().first != t.block) {
        return at(static_cast<int>(s), p.rank) + "awaits block " + std::to_string(t.block) + " which does not come";
      }
      auto& held = holds[static_cast<std::size_t>(p.rank)][static_cast<std::size_t>(t.block)];
      if (t.how == Combine::copy) held.clear();
      for (const auto& [who, times] : wire.front().second) held[who] += times;
      arrived[static_cast<std::size_t>(p.rank)][static_cast<std::size_t>(t.block)] = wire.front().second;
      wire.erase(wire.begin());
    }
  }
  for (const auto& [pair, wire] : wires) {
    if (!wire.empty()) return at(static_cast<int>(s), pair.first) + "sends what nobody awaits";
  }
  return "";
}

inline Outcome run(const std::vector<Program>& programs) {
  const int ranks = static_cast<int>(programs.size());
  Outcome out;
  out.arrived.resize(programs.size());
  std::size_t steps = 0;
  for (int r = 0; r < ranks; ++r) {
    const Program& p = programs[static_cast<std::size_t>(r)];
    out.problem = check_alone(p, ranks, r);
    if (!out.problem.empty()) return out;
    out.holds.emplace_back(static_cast<std::size_t>(p.blocks));
    out.arrived[static_cast<std::size_t>(r)].resize(static_cast<std::size_t>(p.blocks));
    for (std::size_t b = 0; b < p.operand.size(); ++b) {
      if (p.operand[b]) out.holds.back()[b][r] = 1;
    }
    steps = std::max(steps, p.steps.size());
  }
  for (std::size_t s = 0; s < steps && out.problem.empty(); ++s)
    out.problem = run_step(programs, s, out.holds, out.arrived);
  return out;
}

/// The contribution of each rank in [first, end), once.
inline Contributions each_of(int first, int end) {
  Contributions c;
  for (int r = first; r < end; ++r) c[r] = 1;
  return c;
}

/// The programs of all ranks: make(rank).
template <typename Make>
std::vector<Program> programs_of(int ranks, Make make) {
  std::vector<Program> programs;
  for (int r = 0; r < ranks; ++r) programs.push_back(make(r));
  return programs;
}

/// Runs them and compares every result: want(rank, block) is what it must be, empty where the rank must keep nothing.
/// Returns the first problem, or "".
template <typename Want>
std::string check(const std::vector<Program>& programs, Want want) {
  const Outcome out = run(programs);
  if (!out.problem.empty()) return out.problem;
  for (const Program& p : programs) {
    const auto& state = p.exclusive ? out.arrived : out.holds;
    for (int b = 0; b < p.blocks; ++b) {
      const auto block = static_cast<std::size_t>(b);
      const Contributions wanted = want(p.rank, b);
      const std::string where = "rank " + std::to_string(p.rank) + ", block " + std::to_string(b) + ": ";
      if (p.result[block] == wanted.empty()) return where + (p.result[block] ? "kept" : "not kept");
      if (p.result[block] && state[static_cast<std::size_t>(p.rank)][block] != wanted) return where + "wrong sum";
    }
  }
  return "";
}

/// Most steps that any rank takes.
inline std::size_t steps_of(const std::vector<Program>& programs) {
  std::size_t most = 0;
  for (const Program& p : programs) most = std::max(most, p.steps.size());
  return most;
}

}  // namespace laconic::schedule::symbolic
