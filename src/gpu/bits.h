// Bytes and bits of a lane: byte permutation, dot products of bytes, and the 8 x 8 bit transposes between values and
// planes. On the device each primitive is one instruction. Sources: Hacker's Delight (transpose by swapping halves);
// the rest ours.
#pragma once

#include <algorithm>

#include "gpu/warp.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Byte i of the result is byte (selector >> 4 i) & 7 of the eight bytes b:a (a is the lower word).
LACONIC_GPU_FN std::uint32_t byte_perm(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(a, b, selector);
#else
  const std::uint64_t ba = std::uint64_t{b} << 32 | a;
  std::uint32_t r = 0;
  for (int i = 0; i < 4; ++i) r |= static_cast<std::uint32_t>(ba >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
  return r;
#endif
}

/// Bits shift .. shift + 31 of high:low; shift 0..32.
LACONIC_GPU_FN std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high, std::uint32_t shift) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_rc(low, high, shift);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> std::min(shift, 32U));
#endif
}

/// c + the sum of the products of the four bytes of a and b, as signed numbers.
LACONIC_GPU_FN std::int32_t dot_signed(std::uint32_t a, std::uint32_t b, std::int32_t c) {
#if defined(__CUDA_ARCH__)
  return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
#else
  auto sum = static_cast<std::uint32_t>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<std::uint32_t>(static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i));
  return static_cast<std::int32_t>(sum);
#endif
}
/// The same with unsigned bytes.
LACONIC_GPU_FN std::int32_t dot_unsigned(std::uint32_t a, std::uint32_t b, std::int32_t c) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::int32_t>(__dp4a(a, b, static_cast<unsigned>(c)));
#else
  auto sum = static_cast<std::uint32_t>(c);
  for (int i = 0; i < 32; i += 8) sum += (a >> i & 255) * (b >> i & 255);
  return static_cast<std::int32_t>(sum);
#endif
}

/// The bits of a where `mask` has ones, else those of b. One instruction: of the expression, whose masks are constants,
/// the compiler makes two.
LACONIC_GPU_FN std::uint32_t pick_bits(std::uint32_t mask, std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t r = 0;
  asm("lop3.b32 %0,%1,%2,%3,0xCA;" : "=r"(r) : "r"(mask), "r"(a), "r"(b));
  return r;
#else
  return (a & mask) | (b & ~mask);
#endif
}

LACONIC_GPU_FN void swap_bits(std::uint32_t& a, std::uint32_t& b, int shift, std::uint32_t keep) {
  const std::uint32_t x = pick_bits(keep, a, b << shift);
  b = pick_bits(keep, a >> shift, b);
  a = x;
}

/// Transposes the four 8 x 8 bit matrices that the byte columns of eight words are: bit r of byte m of w[k] <-> bit k
/// of byte m of w[r]. Its own inverse.
LACONIC_GPU_FN void transpose_bits(std::uint32_t (&w)[8]) {
  LACONIC_GPU_UNROLL
  for (int i = 0; i < 4; ++i) swap_bits(w[i], w[i + 4], 4, 0x0F0F0F0FU);
  LACONIC_GPU_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int k = (i & 1) | (i & 2) << 1;  // 0, 1, 4, 5
    swap_bits(w[k], w[k + 2], 2, 0x33333333U);
  }
  LACONIC_GPU_UNROLL
  for (int i = 0; i < 8; i += 2) swap_bits(w[i], w[i + 1], 1, 0x55555555U);
}

/// Eight words, byte m of w[k] = value 8 m + k, become x: byte e of x[j] = value 4 j + e.
LACONIC_GPU_FN void bytes_in_order(const std::uint32_t (&w)[8], std::uint32_t* x) {
  LACONIC_GPU_UNROLL
  for (int q = 0; q < 2; ++q) {
    const std::uint32_t a = byte_perm(w[4 * q], w[4 * q + 1], 0x5140);
    const std::uint32_t b = byte_perm(w[4 * q + 2], w[4 * q + 3], 0x5140);
    const std::uint32_t c = byte_perm(w[4 * q], w[4 * q + 1], 0x7362);
    const std::uint32_t d = byte_perm(w[4 * q + 2], w[4 * q + 3], 0x7362);
    x[q] = byte_perm(a, b, 0x5410);
    x[2 + q] = byte_perm(a, b, 0x7632);
    x[4 + q] = byte_perm(c, d, 0x5410);
    x[6 + q] = byte_perm(c, d, 0x7632);
  }
}

/// The top bit of each byte that is not 0.
LACONIC_GPU_FN std::uint32_t tops_of_bytes(std::uint32_t x) {
  return (((x & 0x7F7F7F7FU) + 0x7F7F7F7FU) | x) & 0x80808080U;
}

/// A bit for each of the eight bytes high:low that is not 0.
LACONIC_GPU_FN std::uint32_t flags_of_bytes(std::uint32_t low, std::uint32_t high) {
  return tops_of_bytes(low) >> 7 | tops_of_bytes(high) >> 3;
}
/// Puts them in the order of the bytes, in bits 0..7; what is above these is unspecified.
LACONIC_GPU_FN std::uint32_t bits_of_flags(std::uint32_t flags) {
  return flags * 0x00204081U >> 21;  // no two of the product's bits meet
}

/// Bit g: byte g of the eight bytes high:low is not 0.
LACONIC_GPU_FN std::uint32_t non_zero_bytes(std::uint32_t low, std::uint32_t high) {
  return bits_of_flags(flags_of_bytes(low, high)) & 255;
}
LACONIC_GPU_FN std::uint32_t non_zero_bytes(std::uint64_t plane) {
  return non_zero_bytes(static_cast<std::uint32_t>(plane), static_cast<std::uint32_t>(plane >> 32));
}

/// The sum of sixteen numbers of four bits, each at most 8.
LACONIC_GPU_FN std::uint32_t sum_of_nibbles(std::uint64_t v) {
  constexpr std::uint32_t nibbles = 0x0F0F0F0F;
  const auto low = static_cast<std::uint32_t>(v);
  const auto high = static_cast<std::uint32_t>(v >> 32);
  const std::uint32_t fours = (low & nibbles) + (low >> 4 & nibbles) + (high & nibbles) + (high >> 4 & nibbles);
  return static_cast<std::uint32_t>(dot_unsigned(fours, 0x01010101U, 0));
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
