#include "frame/checksum.h"

#include <isa-l/crc.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

namespace laconic::frame {
namespace {

// A register is a polynomial over GF(2) modulo the generator, its highest power in bit 0; so bit 31 is 1 and
// multiplying by x is a shift to the right.
constexpr std::uint32_t generator = 0x82F63B78U;
constexpr std::uint32_t one = 0x80000000U;

/// Every bit as often set as not: nothing that branches could foresee.
constexpr std::uint32_t if_set(std::uint32_t bit, std::uint32_t v) { return v & (0U - bit); }

constexpr std::uint32_t times_x(std::uint32_t a) { return a >> 1 ^ if_set(a & 1, generator); }

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; a != 0; a <<= 1) {
    sum ^= if_set(a >> 31, b);
    b = times_x(b);
  }
  return sum;
}

/// Products with x^(8 2^k), as 2^k zero bytes after something make them, of every half byte at its place.
class Powers {
 public:
  constexpr Powers() {
    std::uint32_t power = one >> 8;
    for (auto& places : of_) {
      std::uint32_t shifted = power;  // the product of bit 31, then of the bits below
      for (std::size_t bit = 32; bit-- > 0; shifted = times_x(shifted)) places[bit / 4][1U << bit % 4] = shifted;
      for (auto& halves : places)
        for (std::size_t h = 3; h < halves.size(); ++h)
          if ((h & (h - 1)) != 0) halves[h] = halves[h & (h - 1)] ^ halves[h & (0 - h)];
      power = product(power, power);
    }
  }
  [[nodiscard]] std::uint32_t times(std::uint32_t a, std::size_t k) const {
    std::uint32_t sum = 0;
    for (std::size_t place = 0; place < 8; ++place) sum ^= of_[k][place][a >> 4 * place & 15];
    return sum;
  }

 private:
  std::array<std::array<std::array<std::uint32_t, 16>, 8>, 64> of_{};
};
constexpr Powers powers;

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
  for (std::size_t k = 0; n != 0; n >>= 1, ++k)
    if ((n & 1) != 0) first = powers.times(first, k);
  return first ^ second;
}

void CrcRuns::add(std::span<const std::uint8_t> piece) {
  if (piece.empty()) return;
  const auto run_before = [&] {
    const std::lock_guard lock(lock_);
    auto found = std::find_if(runs_.begin(), runs_.end(), [&](const Run& r) { return r.end == piece.data(); });
    if (found == runs_.end()) found = runs_.insert(found, {piece.data(), piece.data(), 0, true});
    found->growing = true;
    return found;
  };
  // Nobody else goes on where this piece begins, nor joins a run that grows.
  const auto run = run_before();
  const std::uint32_t crc = crc_update(run->crc, piece);
  const std::lock_guard lock(lock_);
  run->crc = crc;
  run->end = piece.data() + piece.size();
  run->growing = false;
  join_neighbours(run);
}

/// So that there are not many runs to look through where threads take turns.
void CrcRuns::join_neighbours(std::list<Run>::iterator run) {
  const auto join = [&](std::list<Run>::iterator first, std::list<Run>::iterator second) {
    first->crc = crc_join(first->crc, second->crc, static_cast<std::uint64_t>(second->end - second->begin));
    first->end = second->end;
    runs_.erase(second);
    return first;
  };
  const auto before =
      std::find_if(runs_.begin(), runs_.end(), [&](const Run& r) { return !r.growing && r.end == run->begin; });
  if (before != runs_.end()) run = join(before, run);
  const auto after =
      std::find_if(runs_.begin(), runs_.end(), [&](const Run& r) { return !r.growing && r.begin == run->end; });
  if (after != runs_.end()) join(run, after);
}

std::uint32_t CrcRuns::update(std::uint32_t crc, std::span<const std::uint8_t> bytes) const {
  std::vector<Run> runs(runs_.begin(), runs_.end());
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  const std::uint8_t* at = bytes.data();
  for (const Run& r : runs) {
    crc = crc_update(crc, {at, r.begin});
    crc = crc_join(crc, r.crc, static_cast<std::uint64_t>(r.end - r.begin));
    at = r.end;
  }
  return crc_update(crc, {at, bytes.data() + bytes.size()});
}

}  // namespace laconic::frame
