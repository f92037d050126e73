#include "core/cache.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace laconic {
namespace {

#if defined(__x86_64__)
/// CPUID's description of caches, one a subleaf: leaf 4 of Intel's processors, 8000001D of AMD's.
std::size_t largest_of_leaf(unsigned leaf) {
  std::size_t largest = 0;
  for (unsigned i = 0; i < 16; ++i) {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid_count(leaf, i, &a, &b, &c, &d) == 0 || (a & 31) == 0) break;
    const std::size_t ways = (b >> 22) + 1;
    const std::size_t partitions = (b >> 12 & 1023) + 1;
    const std::size_t line = (b & 4095) + 1;
    largest = std::max(largest, ways * partitions * line * (std::size_t{c} + 1));
  }
  return largest;
}
std::size_t find_largest() { return std::max(largest_of_leaf(4), largest_of_leaf(0x8000001D)); }

bool is_of_amd() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) != 0 && c == 0x444D4163;  // the end of "AuthenticAMD"
}
#else
std::size_t find_largest() { return 0; }
bool is_of_amd() { return false; }
#endif

}  // namespace

std::size_t largest_cache_bytes() {
  static const std::size_t bytes = find_largest();
  return bytes;
}

bool few_lines_on_their_way() {
  static const bool few = !is_of_amd();
  return few;
}

}  // namespace laconic
