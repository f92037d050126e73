// Which chunks of an array stand for all of it where its ratio is estimated.
#pragma once

#include <cstdint>

#include "frame/frame.h"

namespace laconic {

/// Chunks spread evenly over an array of `count` elements: all of them where there are few, of a short array as many as
/// cost little beside the call.
struct Sample {
  static constexpr std::uint64_t least_chunks = 2, most_chunks = 16;
  static constexpr std::uint64_t one_in = 16;

  std::uint64_t count = 0;

  [[nodiscard]] constexpr std::uint64_t chunks_in_all() const {
    return (count + frame::chunk_values - 1) / frame::chunk_values;
  }
  [[nodiscard]] constexpr std::uint64_t chunks() const {
    if (chunks_in_all() < least_chunks) return chunks_in_all();
    const std::uint64_t some = chunks_in_all() / one_in;
    return some < least_chunks ? least_chunks : some < most_chunks ? some : most_chunks;
  }
  /// The first element of the i-th chunk that is taken.
  [[nodiscard]] constexpr std::uint64_t first(std::uint64_t i) const {
    return i * chunks_in_all() / chunks() * frame::chunk_values;
  }
  /// Elements in all; only where all chunks are taken may the last one be short.
  [[nodiscard]] constexpr std::uint64_t elements() const {
    return chunks() == chunks_in_all() ? count : chunks() * frame::chunk_values;
  }
};

}  // namespace laconic
