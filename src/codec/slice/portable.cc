// Vectors of 128 bits by Highway: NEON on Arm, SSSE3 on x86-64 (the least that Highway has vectors for; every processor
// since 2011), on others the compiler's baseline.
//
// A block's 64 bytes lie in four vectors. Where a byte lies has six bits: two for the vector, four within it. Each
// stands for one bit of the value's number (v5..v0, group of eight = v5 v4 v3) or, once exchanged, of the plane's (r2
// r1 r0). Orders are written [vector1 vector0 b3 b2 b1 b0].
#include <bit>
#include <cmath>
#include <cstring>

#include "codec/slice/chunk_integers.h"
#include "codec/slice/kernel_sets.h"
#include "codec/slice/scratch.h"
#include "core/half.h"

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

constexpr hn::FixedTag<std::uint8_t, 16> d8;
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

/// Bytes in value order to eight planes.
HWY_INLINE void to_planes(const std::uint8_t* bytes, std::uint64_t* planes) {
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
  hn::StoreU(hn::BitCast(d64, a), d64, planes);
  hn::StoreU(hn::BitCast(d64, c), d64, planes + 2);
  hn::StoreU(hn::BitCast(d64, b), d64, planes + 4);
  hn::StoreU(hn::BitCast(d64, d), d64, planes + 6);
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

/// Bit g: byte g of the plane is not zero.
HWY_INLINE unsigned mask_of(std::uint64_t plane) {
  constexpr std::uint64_t low = 0x7F7F7F7F7F7F7F7FULL;
  const std::uint64_t top = (((plane & low) + low) | plane) & ~low;
  return static_cast<unsigned>((top >> 7) * 0x0102040810204080ULL >> 56);
}

struct Portable : PortableBase {
  // ------------------------------------------------------------------------------------------- planes out

  static void put_plane(Out& o, std::uint64_t plane) {
    *o.masks++ = static_cast<std::uint8_t>(mask_of(plane));
    for (int g = 0; g < 64; g += 8) {
      const auto byte = static_cast<std::uint8_t>(plane >> g);
      *o.bytes = byte;
      o.bytes += byte != 0 ? 1 : 0;
    }
  }

  static Split put(Out& o, const Block64& r) {
    std::uint32_t z[block_values];
    std::uint32_t any = 0;
    for (int i = 0; i < block_values; ++i) any |= z[i] = zigzag(r.v[i]);
    const int w = std::bit_width(any);
    std::uint64_t plane[32];
    for (int g = 0; 8 * g < w; ++g) {
      std::uint8_t bytes[block_values];
      for (int i = 0; i < block_values; ++i) bytes[i] = static_cast<std::uint8_t>(z[i] >> (8 * g));
      to_planes(bytes, plane + 8 * g);
    }
    const int d = dense_planes(w, [&](int k) { return std::popcount(mask_of(plane[k])); });
    std::memcpy(o.dense, plane, static_cast<std::size_t>(8 * d));
    o.dense += 8 * d;
    for (int k = d; k < w; ++k) put_plane(o, plane[k]);
    return {w, d};
  }

  /// 64 bytes as eight planes. Byte r of what it returns tells which bytes of plane r are not zero.
  static std::uint64_t planes_of_bytes(const std::uint8_t* bytes, std::uint64_t* plane) {
    to_planes(bytes, plane);
    std::uint64_t nonzero = 0;
    for (int r = 0; r < 8; ++r) nonzero |= std::uint64_t{mask_of(plane[r])} << (8 * r);
    return nonzero;
  }
  static void bytes_of_planes(const std::uint64_t* plane, std::uint8_t* bytes) { to_bytes(plane, bytes); }

  // ------------------------------------------------------------------------------------------- planes in

  static std::uint64_t get_plane(In& in) {
    std::uint64_t plane = 0;
    const unsigned mask = *in.masks++;
    for (unsigned g = 0; g < 8; ++g) {
      const std::uint64_t there = mask >> g & 1;
      plane |= (*in.bytes & (0 - there)) << (8 * g);
      in.bytes += there;
    }
    return plane;
  }

  static Block64 get(In& in, int dense, int sparse) {
    std::uint64_t plane[32] = {};
    const int w = dense + sparse;
    for (int k = 0; k < dense; ++k) plane[k] = load<std::uint64_t>(in.dense + 8 * k);
    in.dense += 8 * dense;
    for (int k = dense; k < w; ++k) plane[k] = get_plane(in);
    std::uint32_t z[block_values] = {};
    for (int g = 0; 8 * g < w; ++g) {
      std::uint8_t bytes[block_values];
      to_bytes(plane + 8 * g, bytes);
      for (int i = 0; i < block_values; ++i) z[i] |= static_cast<std::uint32_t>(bytes[i]) << (8 * g);
    }
    Block64 r;
    for (int i = 0; i < block_values; ++i) r.v[i] = static_cast<std::int32_t>(z[i] >> 1 ^ (0 - (z[i] & 1)));
    return r;
  }

  /// Sums of residuals along a chunk.
  template <Predictor P>
  struct Chain {
    std::uint32_t last;       // the integer before
    std::uint32_t slope = 0;  // the difference before
    explicit Chain(std::int32_t base) : last(static_cast<std::uint32_t>(base)) {}

    void next(In& in, int dense, int sparse, std::int32_t* q) {
      const Block64 r = get(in, dense, sparse);
      for (int i = 0; i < block_values; ++i) {
        const auto v = static_cast<std::uint32_t>(r.v[i]);
        if constexpr (P == Predictor::none) {
          q[i] = static_cast<std::int32_t>(last + v);
        } else {
          slope = P == Predictor::second ? slope + v : v;
          last += slope;
          q[i] = static_cast<std::int32_t>(last);
        }
      }
    }
  };

  static Split add_block(In& a, int da, int sa, In& b, int db, int sb, Out& o) {
    const Block64 ra = get(a, da, sa);
    return put(o, sum(ra, get(b, db, sb)));
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
