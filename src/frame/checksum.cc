#include "frame/checksum.h"

#include <isa-l/crc.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

namespace laconic::frame {
namespace {

// A register is a polynomial over GF(2) modulo the generator, its highest power in bit 0; so bit 31 is 1 and
// multiplying by x is a shift to the right.
constexpr std::uint32_t generator = 0x82F63B78U;
constexpr std::uint32_t one = 0x80000000U;

constexpr std::uint32_t times_x(std::uint32_t a) { return a >> 1 ^ ((a & 1) != 0 ? generator : 0); }

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; a != 0; a <<= 1) {
    if ((a & one) != 0) sum ^= b;
    b = times_x(b);
  }
  return sum;
}

// ISA-L's CRC for AVX-512 leaves the upper halves of its registers in use. On Intel's processors that makes every SSE
// instruction wait for the ones before it, here and in the caller's program, up to 20 times as long.
#if defined(__x86_64__)
__attribute__((target("avx"))) void release_upper_halves() { _mm256_zeroupper(); }

void clean_up_after_isal() {
  static const bool avx = __builtin_cpu_supports("avx") != 0;
  if (avx) release_upper_halves();
}
#else
void clean_up_after_isal() {}
#endif

}  // namespace

std::uint32_t crc_update(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::size_t part = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
    crc = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(part), crc);
    bytes = bytes.subspan(part);
  }
  clean_up_after_isal();
  return crc;
}

std::uint32_t crc_join(std::uint32_t first, std::uint32_t second, std::uint64_t n) {
  std::uint32_t power = one >> 8;  // x^8: a zero byte after what led to `first`
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) first = product(first, power);
    power = product(power, power);
  }
  return first ^ second;
}

}  // namespace laconic::frame
