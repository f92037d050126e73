// What all codecs but slice have in common: the array is cut in pieces of a fixed number of elements that are coded
// each for itself, so that threads and random access come for free, and a piece that would not shrink is stored as it
// is.
//
//   offset
//   0            u32       elements of a piece (the last one may have fewer); at most 2^20
//   4            u32 x n   bytes of each piece; as many as its elements take uncompressed: stored as it is
//   4 + 4 n                the pieces, one after another; an array of no elements has a payload of no bytes
#pragma once

#include <memory>

#include "codec/codec.h"

namespace laconic {

/// Codes pieces of one array, for one thread. Kernels may read or write this many bytes past what they are given.
inline constexpr std::size_t piece_slack = 64;

class PieceCoder {
 public:
  virtual ~PieceCoder() = default;
  /// Most bytes that encode() writes for n elements, besides piece_slack.
  [[nodiscard]] virtual std::size_t limit(std::size_t n) const = 0;
  /// Returns the piece's bytes. 0, or not fewer than the elements' own: it is stored as it is.
  virtual std::size_t encode(const std::uint8_t* x, std::size_t n, std::uint8_t* out) = 0;
  /// False: nothing that encode() wrote.
  virtual bool decode(CodecBytes in, std::uint8_t* y, std::size_t n) = 0;
};

class PiecewiseCodec : public Codec {
 public:
  static constexpr std::size_t most_piece_values = std::size_t{1} << 20;

  [[nodiscard]] std::size_t capacity(DType dtype, std::size_t count) const final;
  [[nodiscard]] std::uint64_t most_elements(std::uint64_t payload_bytes) const final;
  std::size_t encode(ConstArray x, const Grid& grid, Extents extents, CodecMutBytes out, int threads,
                     Witness* witness) const final;
  void check(const Coded& coded, CodecBytes payload) const final;
  void decode(const Coded& coded, CodecBytes payload, std::size_t first, MutArray y, int threads) const final;

 protected:
  /// Elements of a piece: at least 1024 (of 8 bytes; 2048 of 4, ...), at most most_piece_values.
  [[nodiscard]] virtual std::size_t piece_values(DType dtype, Extents extents) const = 0;
  /// For every thread of a call one. Throws Error(unsupported) when the codec is not available.
  [[nodiscard]] virtual std::unique_ptr<PieceCoder> coder(const Grid& grid, Extents extents) const = 0;
};

}  // namespace laconic
