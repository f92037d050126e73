// CRC-32C (Castagnoli, as in RFC 3720) of bytes that come in pieces, or in another order than they lie in. By ISA-L.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>

#include "core/spin_lock.h"

namespace laconic::frame {

/// The register of a CRC under way: starts as crc_start; its complement is the checksum.
inline constexpr std::uint32_t crc_start = 0xFFFFFFFFU;

/// The register after these bytes too.
std::uint32_t crc_update(std::uint32_t crc, std::span<const std::uint8_t> bytes);

/// The register after bytes that led to `first`, and then `n` bytes that lead from 0 to `second`.
std::uint32_t crc_join(std::uint32_t first, std::uint32_t second, std::uint64_t n);

/// CRCs of pieces of something, which several threads may add. Pieces that follow one another make few runs.
class CrcRuns {
 public:
  void add(std::span<const std::uint8_t> piece);
  /// The register after all of these bytes too, every run a part of them. Looks only at those that were not added.
  [[nodiscard]] std::uint32_t update(std::uint32_t crc, std::span<const std::uint8_t> bytes) const;

 private:
  struct Run {
    const std::uint8_t* begin;
    const std::uint8_t* end;
    std::uint32_t crc;  ///< from 0 on
    bool growing;       ///< its end is about to move
  };
  void join_neighbours(std::list<Run>::iterator run);

  SpinLock lock_;
  std::list<Run> runs_;
};

}  // namespace laconic::frame
