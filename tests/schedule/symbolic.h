// Runs the programs of all ranks symbolically: what a rank holds of a block is the multiset of ranks whose contribution
// is in it. Proves a schedule complete (nothing missing), correct (nothing twice) and free of deadlock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"
#include "support/sanitized.h"

namespace laconic::schedule::symbolic {

/// Schedules are proven for up to so many.
constexpr int most_ranks = test::sanitized ? 20 : 64;

/// How often each rank's contribution is in a block; nothing of any: nothing held.
class Contributions {
 public:
  Contributions() = default;
  /// Of ranks in [first, end), once.
  Contributions(int first, int end) { std::fill(times_.begin() + first, times_.begin() + end, std::uint16_t{1}); }
  [[nodiscard]] bool empty() const { return *this == Contributions{}; }
  void add(const Contributions& other) {
    for (std::size_t r = 0; r < times_.size(); ++r) times_[r] = static_cast<std::uint16_t>(times_[r] + other.times_[r]);
  }
  bool operator==(const Contributions&) const = default;

 private:
  std::array<std::uint16_t, 64> times_{};
};
static_assert(most_ranks <= 64);
using State = std::vector<std::vector<Contributions>>;  ///< [rank][block]

struct Outcome {
  State holds;          ///< what ranks hold in the end
  State arrived;        ///< what arrived last, as it came
  std::string problem;  ///< empty when the programs fit together
  /// [rank][block]: receives that are still to come, and whether a result came as plain elements.
  std::vector<std::vector<int>> awaited;
  std::vector<std::vector<bool>> came_plain;
};

/// What is on its way from one rank to another.
struct Parcel {
  int block = 0;
  bool plain = false;
  Contributions content;
};

/// The messages from one rank to another, in order.
struct Wire {
  std::vector<Parcel> parcels;
  std::size_t taken = 0;
  [[nodiscard]] bool empty() const { return taken == parcels.size(); }
  [[nodiscard]] const Parcel& front() const { return parcels[taken]; }
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

/// What a rank sends; empty where it has nothing that could go that way.
inline Contributions sent(const Program& p, const Transfer& t, const Outcome& out) {
  const auto rank = static_cast<std::size_t>(p.rank);
  const auto block = static_cast<std::size_t>(t.block);
  if (!t.plain) return out.came_plain[rank][block] ? Contributions{} : out.holds[rank][block];
  if (p.result[block] && out.awaited[rank][block] == 0) return out.holds[rank][block];
  return p.operand[block] ? Contributions(p.rank, p.rank + 1) : Contributions{};
}

/// Every receive of the step must find its message: same pair, same block, same form, same place in the order of that
/// pair.
inline std::string run_step(const std::vector<Program>& programs, std::size_t s, Outcome& out) {
  std::map<std::pair<int, int>, Wire> wires;  // (from, to) -> messages in order
  for (const Program& p : programs) {
    if (s >= p.steps.size()) continue;
    for (const Transfer& t : p.steps[s].sends) {
      const Contributions content = sent(p, t, out);
      if (content.empty())
        return at(static_cast<int>(s), p.rank) + "sends block " + std::to_string(t.block) + ", has none";
      wires[{p.rank, t.peer}].parcels.push_back({t.block, t.plain, content});
    }
  }
  for (const Program& p : programs) {
    if (s >= p.steps.size()) continue;
    for (const Transfer& t : p.steps[s].recvs) {
      Wire& wire = wires[{t.peer, p.rank}];
      if (wire.empty() || wire.front().block != t.block || wire.front().plain != t.plain) {
        return at(static_cast<int>(s), p.rank) + "awaits block " + std::to_string(t.block) + " which does not come";
      }
      const auto rank = static_cast<std::size_t>(p.rank);
      const auto block = static_cast<std::size_t>(t.block);
      auto& held = out.holds[rank][block];
      if (t.how == Combine::copy) held = {};
      held.add(wire.front().content);
      out.arrived[rank][block] = wire.front().content;
      out.came_plain[rank][block] = t.plain && t.how == Combine::copy;
      --out.awaited[rank][block];
      ++wire.taken;
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
    const auto blocks = static_cast<std::size_t>(p.blocks);
    out.holds.emplace_back(blocks);
    out.arrived[static_cast<std::size_t>(r)].resize(blocks);
    out.came_plain.emplace_back(blocks);
    out.awaited.emplace_back(blocks);
    for (const Step& step : p.steps)
      for (const Transfer& t : step.recvs) ++out.awaited.back()[static_cast<std::size_t>(t.block)];
    for (std::size_t b = 0; b < p.operand.size(); ++b) {
      if (p.operand[b]) out.holds.back()[b] = Contributions(r, r + 1);
    }
    steps = std::max(steps, p.steps.size());
  }
  for (std::size_t s = 0; s < steps && out.problem.empty(); ++s) out.problem = run_step(programs, s, out);
  return out;
}

/// The contribution of each rank in [first, end), once.
inline Contributions each_of(int first, int end) { return {first, end}; }

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
      const auto because = [&](const char* problem) {
        return "rank " + std::to_string(p.rank) + ", block " + std::to_string(b) + ": " + problem;
      };
      if (p.result[block] == wanted.empty()) return because(p.result[block] ? "kept" : "not kept");
      if (p.result[block] && state[static_cast<std::size_t>(p.rank)][block] != wanted) return because("wrong sum");
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
