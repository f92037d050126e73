// Counts what a warp issues, for translated PTX that says which basic blocks its lanes enter and what they access
// (counted.py). Between two places where all lanes of a warp meet, a warp issues a block as often as the lane that
// enters it most often does: lanes that part ways are taken to meet again as soon as they can. Accesses to global
// memory are counted in sectors of 32 bytes, those to shared memory in passes over its 32 banks.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "machine.h"

namespace counting {

inline constexpr u32 most_blocks = 16384;
inline constexpr u32 most_statements = 131072;
inline constexpr u64 shared_memory_bytes = u64{1} << 20;  // as launch.h maps it

struct Entered {
  u64 issues = 0;  // by warps
  u64 lanes = 0;
};
struct Accessed {
  u64 requests = 0;  // of warps
  u64 bytes = 0;     // of lanes
  u64 sectors = 0;   // global memory
  u64 passes = 0;    // shared memory: 1 a request, or 4 where a lane accesses 16 bytes, unless banks conflict
};

/// An access since the lanes of its warp met last; turn: how often the lane had made that access before.
struct Access {
  u32 statement, turn, lane, size;
  bool shared;
  u64 address;
  auto key() const { return std::tuple(statement, turn); }
};

struct Warp {
  u32 entered[warp_size][most_blocks];
  u16 turns[warp_size][most_statements];
  std::vector<u32> blocks;
  std::vector<std::pair<u32, u32>> turned;  // lane, statement
  std::vector<Access> accesses;
};
inline Warp warps[block_size / warp_size];
inline Entered entered[most_blocks];
inline std::map<u32, Accessed> accessed;
inline bool on = false;

inline void enter(Lane& lane, u32 block) {
  if (!on) return;
  if (block >= most_blocks) fail("too many basic blocks to count");
  Warp& w = warps[lane.tid / warp_size];
  if (w.entered[lane.tid % warp_size][block]++ == 0) w.blocks.push_back(block);
}

inline void access(Lane& lane, u32 statement, u64 address, u32 size) {
  if (!on) return;
  if (statement >= most_statements) fail("too many statements to count");
  Warp& w = warps[lane.tid / warp_size];
  const u32 turn = w.turns[lane.tid % warp_size][statement]++;
  if (turn == 0) w.turned.emplace_back(lane.tid % warp_size, statement);
  const auto stack = reinterpret_cast<u64>(lane.context.uc_stack.ss_sp);
  if (address - stack < lane.context.uc_stack.ss_size) return;  // local memory
  const bool shared = address - reinterpret_cast<u64>(lane.dynamic_shared) < shared_memory_bytes;
  w.accesses.push_back({statement, turn, lane.tid % warp_size, size, shared, address});
}

/// How often shared memory's banks must be gone over: 16 bytes a lane go by quarters of the warp, 8 by halves.
inline u64 passes_of(const Access* a, std::size_t n) {
  const std::size_t part = 128 / std::max(a->size, 4u);
  u64 passes = 0;
  for (std::size_t begin = 0; begin < n; begin += part) {
    std::set<u64> words[32];
    for (std::size_t i = begin; i < std::min(n, begin + part); i++) {
      for (u64 w = a[i].address / 4; w <= (a[i].address + a[i].size - 1) / 4; w++) words[w % 32].insert(w);
    }
    std::size_t most = 0;
    for (const auto& bank : words) most = std::max(most, bank.size());
    passes += most;
  }
  return passes;
}

inline u64 sectors_of(const Access* a, std::size_t n) {
  std::set<u64> sectors;
  for (std::size_t i = 0; i < n; i++) {
    for (u64 s = a[i].address / 32; s <= (a[i].address + a[i].size - 1) / 32; s++) sectors.insert(s);
  }
  return sectors.size();
}

inline void add_accesses(std::vector<Access>& all) {
  std::sort(all.begin(), all.end(),
            [](const Access& a, const Access& b) { return std::tuple(a.key(), a.lane) < std::tuple(b.key(), b.lane); });
  for (std::size_t i = 0, n = 0; i < all.size(); i += n) {
    for (n = 1; i + n < all.size() && all[i + n].key() == all[i].key(); n++) {
    }
    Accessed& to = accessed[all[i].statement];
    to.requests++;
    to.bytes += n * all[i].size;
    if (all[i].shared) {
      to.passes += passes_of(&all[i], n);
    } else {
      to.sectors += sectors_of(&all[i], n);
    }
  }
  all.clear();
}

/// All lanes of a warp have met.
inline void meet(Lane* first) {
  Warp& w = warps[first->tid / warp_size];
  for (const u32 b : w.blocks) {
    u32 most = 0;
    for (auto& of_lane : w.entered) {
      most = std::max(most, of_lane[b]);
      entered[b].lanes += of_lane[b];
      of_lane[b] = 0;
    }
    entered[b].issues += most;
  }
  w.blocks.clear();
  add_accesses(w.accesses);
  for (const auto& [lane, statement] : w.turned) w.turns[lane][statement] = 0;
  w.turned.clear();
}

}  // namespace counting
