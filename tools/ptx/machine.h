// What translated PTX (translate.py) runs on: one thread block of 256 lanes, each a fiber of its own, in changing
// orders. It aborts on what a GPU leaves undefined or would hang on: lanes of a warp at different collectives, a mask
// that leaves lanes out, misaligned access, deadlock.
#pragma once

#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "core/half.h"

// The types of PTX; translated code names no others.
using u8 = std::uint8_t;
using s8 = std::int8_t;
using u16 = std::uint16_t;
using s16 = std::int16_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;
using std::isnan;

inline constexpr int warp_size = 32;
inline constexpr int block_size = 256;

enum class State : u8 { ready, at_warp, at_block, done };

struct Lane {
  u32 tid, cta, ncta;
  u8* dynamic_shared;
  u8* static_shared;
  State state = State::ready;
  int at = 0;      // the statement at which it waits
  u64 offered[2];  // to its warp: in turns, since a lane may come to the next collective before others have read this
                   // one
  int turn = 0;
  ucontext_t context;
};
inline Lane lanes[block_size];
inline ucontext_t scheduler;

[[noreturn]] inline void fail(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}

// Lanes joined: statement is the number that all lanes of a warp must have come to.

inline void wait(Lane& lane, State state, int statement) {
  lane.state = state;
  lane.at = statement;
  swapcontext(&lane.context, &scheduler);
}
inline void warp_sync(Lane& lane, int statement) { wait(lane, State::at_warp, statement); }
inline void block_sync(Lane& lane, int statement) { wait(lane, State::at_block, statement); }

inline Lane* warp_of(Lane& lane) { return lanes + (lane.tid & ~31u); }

/// Offers a value to the warp, waits for the others' and says in which of `offered` they lie.
inline int exchange(Lane& lane, int statement, u64 value, u32 mask) {
  if (mask != ~0u) fail("a mask leaves lanes out");
  lane.turn ^= 1;
  const int turn = lane.turn;
  lane.offered[turn] = value;
  warp_sync(lane, statement);
  return turn;
}

/// mode: the first letter of up, down, bfly, idx. found: whether the lane to read from lies in the warp.
inline u32 shfl(Lane& lane, int statement, u32 value, char mode, u32 b, u32 clamp, u32 mask, bool& found) {
  const int turn = exchange(lane, statement, value, mask);
  const int own = lane.tid & 31, by = b & 31;
  if (clamp != (mode == 'u' ? 0 : 31)) fail("a shuffle within less than a warp");
  const int from = mode == 'u' ? own - by : mode == 'd' ? own + by : mode == 'b' ? own ^ by : by;
  found = from >= 0 && from < warp_size;
  return static_cast<u32>(warp_of(lane)[found ? from : own].offered[turn]);
}

inline u32 vote_ballot(Lane& lane, int statement, bool vote, u32 mask) {
  const int turn = exchange(lane, statement, vote, mask);
  u32 votes = 0;
  for (int i = 0; i < warp_size; i++) votes |= static_cast<u32>(warp_of(lane)[i].offered[turn] != 0) << i;
  return votes;
}
inline bool vote_any(Lane& lane, int statement, bool vote, u32 mask) {
  return vote_ballot(lane, statement, vote, mask) != 0;
}
inline bool vote_all(Lane& lane, int statement, bool vote, u32 mask) {
  return vote_ballot(lane, statement, vote, mask) == ~0u;
}

/// mode: the first letter of or, add, max (of unsigned numbers).
inline u32 redux(Lane& lane, int statement, u32 value, char mode, u32 mask) {
  const int turn = exchange(lane, statement, value, mask);
  u32 r = 0;
  for (int i = 0; i < warp_size; i++) {
    const u32 v = static_cast<u32>(warp_of(lane)[i].offered[turn]);
    r = mode == 'o' ? r | v : mode == 'a' ? r + v : v > r ? v : r;
  }
  return r;
}

// Values

inline float f32_of_bits(u32 v) { return std::bit_cast<float>(v); }
inline double f64_of_bits(u64 v) { return std::bit_cast<double>(v); }
inline u32 bits_of_f32(float v) { return std::bit_cast<u32>(v); }
inline u64 bits_of_f64(double v) { return std::bit_cast<u64>(v); }

/// NVIDIA's operations give one NaN, whatever NaN went in.
inline float nvidia_nan(float v) { return v != v ? f32_of_bits(0x7fffffff) : v; }
inline double nvidia_nan(double v) { return v != v ? f64_of_bits(0x7fffffffffffffffull) : v; }
inline u16 to_f16(float v) { return v != v ? 0x7fff : laconic::f16_of_f32(v); }
inline u16 to_bf16(float v) { return v != v ? 0x7fff : laconic::bf16_of_f32(v); }
inline float of_f16(u16 v) { return nvidia_nan(laconic::f32_of_f16(v)); }

/// Conversion to an integer: the nearest there is; NaN gives 0.
template <class I, class F>
I saturated(F v) {
  using Limits = std::numeric_limits<I>;
  if (v != v) return 0;
  if (v <= static_cast<F>(Limits::min())) return Limits::min();
  if (v >= static_cast<F>(Limits::max())) return Limits::max();
  return static_cast<I>(v);
}

inline void check_alignment(u64 address, int size) {
  if (address % size != 0) fail("a misaligned access");
}

// Operations of PTX, by its names

inline u32 prmt(u32 a, u32 b, u32 selectors) {
  const u64 bytes = static_cast<u64>(b) << 32 | a;
  u32 r = 0;
  for (int i = 0; i < 4; i++) {
    const u32 n = selectors >> (4 * i) & 15;
    u32 byte = bytes >> (8 * (n & 7)) & 255;
    if (n & 8) byte = byte & 128 ? 255 : 0;  // its sign, in every bit
    r |= byte << (8 * i);
  }
  return r;
}

/// table: bit 4 a + 2 b + c is what bits a, b and c give.
inline u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 r = 0;
  for (int i = 0; i < 8; i++) {
    if ((table >> i & 1) != 0) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  }
  return r;
}

/// shf.l.clamp
inline u32 shf_l(u32 low, u32 high, u32 by) {
  return static_cast<u32>((static_cast<u64>(high) << 32 | low) >> (32 - (by < 32 ? by : 32)));
}

/// shf.r.clamp
inline u32 shf_r(u32 low, u32 high, u32 by) {
  return static_cast<u32>((static_cast<u64>(high) << 32 | low) >> (by < 32 ? by : 32));
}

template <class I>
I bfi(I from, I to, u32 at, u32 length) {
  at &= 255;
  length &= 255;
  I r = to;
  for (u32 i = 0; i < length && at + i < 8 * sizeof(I); i++) {
    r &= ~(I{1} << (at + i));
    r |= ((from >> i) & I{1}) << (at + i);
  }
  return r;
}

/// Of unsigned numbers.
template <class I>
I bfe(I from, u32 at, u32 length) {
  at &= 255;
  length &= 255;
  I r = 0;
  for (u32 i = 0; i < length && at + i < 8 * sizeof(I); i++) r |= ((from >> (at + i)) & 1) << i;
  return r;
}

template <class I>
I brev(I v) {
  I r = 0;
  for (unsigned i = 0; i < 8 * sizeof(I); i++) r |= ((v >> i) & 1) << (8 * sizeof(I) - 1 - i);
  return r;
}

inline u32 dp4a_s(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<u32>(s32{static_cast<s8>(a >> i)} * s32{static_cast<s8>(b >> i)});
  return c;
}
inline u32 dp4a_u(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
  return c;
}

// Running a block

inline constexpr std::size_t stack_bytes = std::size_t{1} << 20;
inline void (*kernel_of_block)(Lane&);
inline std::mt19937 random_order(1);

inline void fiber(int i) {
  kernel_of_block(lanes[i]);
  lanes[i].state = State::done;
  swapcontext(&lanes[i].context, &scheduler);
}

inline void let_others_run(Lane& lane) { swapcontext(&lane.context, &scheduler); }

/// Who wants to know that all lanes of a warp have met, or ended.
inline void (*warp_met)(Lane* first) = [](Lane*) {};

/// Lets the lanes of every warp go on that all wait at one statement; says whether there was any.
inline bool release_warps() {
  bool any = false;
  for (Lane* warp = lanes; warp != lanes + block_size; warp += warp_size) {
    int waiting = 0;
    bool same = true;
    for (int i = 0; i < warp_size; i++) {
      waiting += warp[i].state == State::at_warp;
      same = same && warp[i].at == warp[0].at;
    }
    if (waiting != warp_size) continue;
    if (!same) fail("lanes of a warp are at different collectives");
    warp_met(warp);
    for (int i = 0; i < warp_size; i++) warp[i].state = State::ready;
    any = true;
  }
  return any;
}

/// Lets the block go on if all of it waits for that.
inline bool release_block() {
  for (const Lane& lane : lanes) {
    if (lane.state != State::at_block) return false;
  }
  for (Lane* warp = lanes; warp != lanes + block_size; warp += warp_size) warp_met(warp);
  for (Lane& lane : lanes) lane.state = State::ready;
  return true;
}

/// Runs block `cta` of `ncta`, of so many threads. stacks: block_size times stack_bytes.
inline void run_block(u32 cta, u32 ncta, u8* dynamic_shared, u8* static_shared, u8* stacks, void (*kernel)(Lane&),
                      int threads = block_size) {
  kernel_of_block = kernel;
  for (int i = 0; i < block_size; i++) {
    Lane& lane = lanes[i];
    lane.tid = i;
    lane.cta = cta;
    lane.ncta = ncta;
    lane.dynamic_shared = dynamic_shared;
    lane.static_shared = static_shared;
    lane.state = i < threads ? State::ready : State::done;
    lane.turn = 0;
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = stacks + i * stack_bytes;
    lane.context.uc_stack.ss_size = stack_bytes;
    lane.context.uc_link = &scheduler;
    makecontext(&lane.context, reinterpret_cast<void (*)()>(fiber), 1, i);
  }
  for (;;) {
    int done = 0;
    bool moved = false;
    const unsigned step = (random_order() % block_size) | 1, first = random_order() % block_size;
    for (unsigned k = 0; k < block_size; k++) {
      Lane& lane = lanes[(k * step + first) % block_size];
      if (lane.state == State::ready) {
        moved = true;
        swapcontext(&scheduler, &lane.context);
      }
      done += lane.state == State::done;
    }
    if (done == block_size) {
      for (Lane* warp = lanes; warp != lanes + block_size; warp += warp_size) warp_met(warp);
      return;
    }
    const bool warps = release_warps(), block = release_block();
    if (!moved && !warps && !block) fail("deadlock");
  }
}
