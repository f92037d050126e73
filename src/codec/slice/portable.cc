// Vectors of 128 bits by Highway: NEON on Arm, SSSE3 on x86-64 (the least that Highway has vectors for; every processor
// since 2011), on others the compiler's baseline.
//
// A block's 64 bytes lie in four vectors. Where a byte lies has six bits: two for the vector, four within it. Each
// stands for one bit of the value's number (v5..v0, group of eight = v5 v4 v3) or, once exchanged, of the plane's (r2
// r1 r0). Orders are written [vector1 vector0 b3 b2 b1 b0].
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codec/slice/byte_tables.h"
#include "codec/slice/chunk_integers.h"
#include "codec/slice/kernel_sets.h"
#include "codec/slice/scratch.h"
#include "core/cache.h"
#include "core/half.h"
#include "core/one_nan.h"

#if defined(__x86_64__) && !defined(__SSSE3__)
#define HWY_BASELINE_TARGETS HWY_SSSE3
#endif
#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR

HWY_BEFORE_NAMESPACE();
namespace laconic::slice {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#include "codec/slice/fast_codec.h"
#include "codec/slice/fast_sums.h"
#include "codec/slice/fast_sums_many.h"
// The policy's base uses the types above.
#include "codec/slice/portable_policy.h"

constexpr hn::FixedTag<std::uint8_t, 8> half8;
constexpr hn::FixedTag<std::uint16_t, 8> d16;
constexpr hn::FixedTag<std::uint64_t, 2> d64;
using Bytes16 = hn::Vec<hn::FixedTag<std::uint8_t, 16>>;

/// Exchanges bits: bit position 2^K of the bytes with what tells a from b.
template <int K>
HWY_INLINE void swap_bits(Bytes16& a, Bytes16& b) {
  constexpr int masks[] = {0, 0x55, 0x33, 0, 0x0F};
  const auto up = hn::BitCast(d8, hn::ShiftRight<K>(hn::BitCast(d16, a)));
  const auto t = hn::And(hn::Xor(up, b), hn::Set(d8, static_cast<std::uint8_t>(masks[K])));
  a = hn::Xor(a, hn::BitCast(d8, hn::ShiftLeft<K>(hn::BitCast(d16, t))));
  b = hn::Xor(b, t);
}

/// [x b3 b2 b1 b0] to [b3 b2 b1 b0 x], x telling a from b.
HWY_INLINE void rotate(Bytes16& a, Bytes16& b) {
  const Bytes16 low = hn::InterleaveLower(d8, a, b);
  b = hn::InterleaveUpper(d8, a, b);
  a = low;
}
/// [x b3 ...] to [b3 x ...].
HWY_INLINE void swap_halves(Bytes16& a, Bytes16& b) {
  const auto qa = hn::BitCast(d64, a);
  const auto qb = hn::BitCast(d64, b);
  a = hn::BitCast(d8, hn::InterleaveLower(d64, qa, qb));
  b = hn::BitCast(d8, hn::InterleaveUpper(d64, qa, qb));
}

/// Bytes in value order to eight planes, and which bytes of each are not zero.
HWY_INLINE void to_planes(const std::uint8_t* bytes, std::uint64_t* planes, std::uint8_t* masks) {
  Bytes16 a = hn::LoadU(d8, bytes);  // [v5 v4 v3 v2 v1 v0]
  Bytes16 b = hn::LoadU(d8, bytes + 16);
  Bytes16 c = hn::LoadU(d8, bytes + 32);
  Bytes16 d = hn::LoadU(d8, bytes + 48);
  rotate(a, c), rotate(b, d);              // [v3 v4 v2 v1 v0 v5]
  rotate(a, b), rotate(c, d);              // [v3 v2 v1 v0 v5 v4]
  swap_bits<4>(a, b), swap_bits<4>(c, d);  // [v3 r2 v1 v0 v5 v4]
  rotate(a, c), rotate(b, d);              // [v1 r2 v0 v5 v4 v3]
  swap_bits<2>(a, c), swap_bits<2>(b, d);  // [r1 r2 v0 v5 v4 v3]
  swap_halves(a, c), swap_halves(b, d);    // [v0 r2 r1 v5 v4 v3]
  swap_bits<1>(a, c), swap_bits<1>(b, d);  // [r0 r2 r1 v5 v4 v3]
  swap_halves(a, c), swap_halves(b, d);    // [r1 r2 r0 v5 v4 v3]
  const Bytes16 pair[] = {a, c, b, d};
  for (int i = 0; i < 4; ++i) {
    hn::StoreU(hn::BitCast(d64, pair[i]), d64, planes + 2 * i);
    hn::StoreMaskBits(d8, hn::Ne(pair[i], hn::Zero(d8)), masks + 2 * i);
  }
}

/// And back.
HWY_INLINE void to_bytes(const std::uint64_t* planes, std::uint8_t* bytes) {
  Bytes16 a = hn::BitCast(d8, hn::LoadU(d64, planes));  // [r1 r2 r0 v5 v4 v3]
  Bytes16 c = hn::BitCast(d8, hn::LoadU(d64, planes + 2));
  Bytes16 b = hn::BitCast(d8, hn::LoadU(d64, planes + 4));
  Bytes16 d = hn::BitCast(d8, hn::LoadU(d64, planes + 6));
  swap_bits<2>(a, c), swap_bits<2>(b, d);  // [v1 r2 r0 v5 v4 v3]
  swap_bits<4>(a, b), swap_bits<4>(c, d);  // [v1 v2 r0 v5 v4 v3]
  swap_halves(a, c), swap_halves(b, d);    // [r0 v2 v1 v5 v4 v3]
  swap_bits<1>(a, c), swap_bits<1>(b, d);  // [v0 v2 v1 v5 v4 v3]
  rotate(a, b), rotate(c, d);              // [v0 v1 v5 v4 v3 v2]
  rotate(a, b), rotate(c, d);              // [v0 v5 v4 v3 v2 v1]
  rotate(a, c), rotate(b, d);              // [v4 v5 v3 v2 v1 v0]
  hn::StoreU(a, d8, bytes);
  hn::StoreU(c, d8, bytes + 16);
  hn::StoreU(b, d8, bytes + 32);
  hn::StoreU(d, d8, bytes + 48);
}

/// Eight bytes by a table's shuffle for a mask; other eight are written, or read.
HWY_INLINE void shuffle(const void* from, const std::uint8_t* control, void* to) {
  const auto bytes = hn::LoadU(half8, static_cast<const std::uint8_t*>(from));
  hn::StoreU(hn::TableLookupBytesOr0(bytes, hn::LoadU(half8, control)), half8, static_cast<std::uint8_t*>(to));
}

struct Portable : PortableBase {
  // ------------------------------------------------------------------------------------------- planes out

  static void put_sparse(Out& o, const std::uint64_t* plane, std::uint8_t mask) {
    *o.masks++ = mask;
    shuffle(plane, compress_shuffles.of(mask), o.bytes);
    o.bytes += bit_counts[mask];
  }
  static void put_plane(Out& o, std::uint64_t plane) {
    std::uint8_t mask = 0;
    const auto bytes = hn::LoadU(half8, reinterpret_cast<const std::uint8_t*>(&plane));
    hn::StoreMaskBits(half8, hn::Ne(bytes, hn::Zero(half8)), &mask);
    put_sparse(o, &plane, mask);
  }

  /// Planes whose topmost is not zero, and which bytes of each are not.
  static Split put_planes(Out& o, const std::uint64_t* plane, const std::uint8_t* masks, int w) {
    const int d = dense_planes(w, [&](int k) { return bit_counts[masks[k]]; });
    std::memcpy(o.dense, plane, static_cast<std::size_t>(8 * d));
    o.dense += 8 * d;
    for (int k = d; k < w; ++k) put_sparse(o, plane + k, masks[k]);
    return {w, d};
  }

  static Split put(Out& o, const Block64& r) {
    std::uint32_t z[block_values];
    std::uint32_t any = 0;
    for (int i = 0; i < block_values; ++i) any |= z[i] = zigzag(r.v[i]);
    const int w = std::bit_width(any);
    std::uint64_t plane[32];
    std::uint8_t masks[32];
    for (int g = 0; 8 * g < w; ++g) {
      std::uint8_t bytes[block_values];
      for (int i = 0; i < block_values; ++i) bytes[i] = static_cast<std::uint8_t>(z[i] >> (8 * g));
      to_planes(bytes, plane + 8 * g, masks + 8 * g);
    }
    return put_planes(o, plane, masks, w);
  }

  /// 64 bytes as eight planes. Byte r of what it returns tells which bytes of plane r are not zero.
  static std::uint64_t planes_of_bytes(const std::uint8_t* bytes, std::uint64_t* plane) {
    std::uint8_t masks[8];
    to_planes(bytes, plane, masks);
    return load<std::uint64_t>(masks);
  }
  static void bytes_of_planes(const std::uint64_t* plane, std::uint8_t* bytes) { to_bytes(plane, bytes); }

  // ------------------------------------------------------------------------------------------- planes in

  static void get_sparse(In& in, std::uint64_t* plane) {
    const std::uint8_t mask = *in.masks++;
    shuffle(in.bytes, expand_shuffles.of(mask), plane);
    in.bytes += bit_counts[mask];
  }
  static std::uint64_t get_plane(In& in) {
    std::uint64_t plane = 0;
    get_sparse(in, &plane);
    return plane;
  }

  static void get_planes(In& in, int dense, int sparse, std::uint64_t* plane) {
    for (int k = 0; k < dense; ++k) plane[k] = load<std::uint64_t>(in.dense + 8 * k);
    in.dense += 8 * dense;
    for (int k = dense; k < dense + sparse; ++k) get_sparse(in, plane + k);
  }

  static Block64 get(In& in, int dense, int sparse) {
    const int w = dense + sparse;
    std::uint64_t plane[32];
    get_planes(in, dense, sparse, plane);
    for (int k = w; k % 8 != 0; ++k) plane[k] = 0;
    Block64 r;
    std::uint8_t bytes[block_values];
    if (w <= 8) {
      if (w == 0) return {};
      to_bytes(plane, bytes);
      for (int i = 0; i < block_values; ++i) r.v[i] = bytes[i] >> 1 ^ -(bytes[i] & 1);
      return r;
    }
    std::uint32_t z[block_values] = {};
    for (int g = 0; 8 * g < w; ++g) {
      to_bytes(plane + 8 * g, bytes);
      for (int i = 0; i < block_values; ++i) z[i] |= static_cast<std::uint32_t>(bytes[i]) << (8 * g);
    }
    for (int i = 0; i < block_values; ++i) r.v[i] = static_cast<std::int32_t>(z[i] >> 1 ^ (0 - (z[i] & 1)));
    return r;
  }

  /// Sums of residuals along a chunk.
  template <Predictor P>
  struct Chain {
    using Four = hn::Vec<hn::FixedTag<std::int32_t, 4>>;
    Four last;                     // all lanes: the integer before
    Four slope = hn::Zero(i32x4);  // all lanes: the difference before
    explicit Chain(std::int32_t base) : last(hn::Set(i32x4, base)) {}

    static Four prefix(Four v) {
      v = hn::Add(v, hn::ShiftLeftLanes<1>(i32x4, v));
      return hn::Add(v, hn::ShiftLeftLanes<2>(i32x4, v));
    }

    void next(In& in, int dense, int sparse, std::int32_t* q) {
      const Block64 r = get(in, dense, sparse);
      for (int i = 0; i < block_values; i += 4) {
        Four v = hn::LoadU(i32x4, r.v + i);
        if constexpr (P == Predictor::none) {
          hn::StoreU(hn::Add(v, last), i32x4, q + i);
          continue;
        }
        // Only the additions to last and slope wait for the four values before.
        v = prefix(v);
        if constexpr (P == Predictor::second) {
          const Four end = hn::Broadcast<3>(v);
          v = prefix(hn::Add(v, slope));
          slope = hn::Add(slope, end);
        }
        hn::StoreU(hn::Add(v, last), i32x4, q + i);
        last = hn::Add(last, hn::Broadcast<3>(v));
      }
    }
  };

  // ------------------------------------------------------------------------------------------- sums

  /// x += y, w planes each, and w + 1 then: bit by bit, 64 numbers at a time. Bit r of a number is its zigzag plane
  /// r + 1 where it is not negative, the inverse where it is; plane 0 is the sign.
  static void add_planes(std::uint64_t* x, const std::uint64_t* y, int w) {
    const std::uint64_t sign_x = x[0];
    const std::uint64_t sign_y = y[0];
    std::uint64_t carry = 0;
    const auto add_bit = [&carry](std::uint64_t a, std::uint64_t b) {
      const std::uint64_t differ = a ^ b;
      const std::uint64_t sum = differ ^ carry;
      carry = (a & b) | (differ & carry);
      return sum;
    };
    for (int r = 0; r + 1 < w; ++r) x[r] = add_bit(x[r + 1] ^ sign_x, y[r + 1] ^ sign_y);
    const std::uint64_t top = add_bit(sign_x, sign_y);
    const std::uint64_t sign = sign_x ^ sign_y ^ carry;
    x[w] = top ^ sign;
    for (int r = w - 1; r > 0; --r) x[r] = x[r - 1] ^ sign;
    x[0] = sign;
  }

  static Split add_block(In& a, int da, int sa, In& b, int db, int sb, Out& o) {
    const int wa = da + sa;
    const int wb = db + sb;
    const int w = std::max(wa, wb);
    if (w == 32) {  // the sum may wrap
      const Block64 ra = get(a, da, sa);
      return put(o, sum(ra, get(b, db, sb)));
    }
    if (w == 0) return {0, 0};
    std::uint64_t x[34];
    std::uint64_t y[32];
    get_planes(a, da, sa, x);
    get_planes(b, db, sb, y);
    std::fill(x + wa, x + w, 0);
    std::fill(y + wb, y + w, 0);
    add_planes(x, y, w);
    int used = w + 1;
    while (used > 0 && x[used - 1] == 0) --used;
    std::uint8_t masks[34];
    x[used] = 0;
    for (int k = 0; k < used; k += 2) {
      const auto pair = hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(x + k));
      hn::StoreMaskBits(d8, hn::Ne(pair, hn::Zero(d8)), masks + k);
    }
    return put_planes(o, x, masks, used);
  }
};

const Kernels* found() { return FastManySums<Portable>::kernels(); }

}  // namespace
}  // namespace laconic::slice
HWY_AFTER_NAMESPACE();

namespace laconic::slice {

const Kernels* portable_kernels() {
#if defined(__x86_64__)
  static const bool have = __builtin_cpu_supports("ssse3");
#else
  constexpr bool have = true;
#endif
  return have ? found() : nullptr;
}

}  // namespace laconic::slice

#else

namespace laconic::slice {
const Kernels* portable_kernels() { return nullptr; }
}  // namespace laconic::slice

#endif
