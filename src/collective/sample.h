// Which chunks of an array stand for all of it where its ratio is estimated.
#pragma once

#include <cstdint>

#include "frame/frame.h"

namespace laconic {

/// Chunks spread evenly over an array of `count` elements; all of them where there are few.
struct Sample {
  static constexpr std::uint64_t most_chunks = 16;

  std::uint64_t count = 0;

  [[nodiscard]] constexpr std::uint64_t chunks_in_all() const {
    return (count + frame::chunk_values - 1) / frame::chunk_values;
  }
  [[nodiscard]] constexpr std::uint64_t chunks() const {
    return chunks_in_all() < most_chunks ? chunks_in_all() : most_chunks;
  }
  /// The first element of the i-th chunk that is taken.
  [[nodiscard]] constexpr std::uint64_t first(std::uint64_t i) const {
    return i * chunks_in_all() / chunks() * frame::chunk_values;
  }
  /// Elements in all; only where all chunks are taken may the last one be short.
  [[nodiscard]] constexpr std::uint64_t elements() const {
    return count < most_chunks * frame::chunk_values ? count : most_chunks * frame::chunk_values;
  }
};

}  // namespace laconic
