// What the adapters over lossless byte coders share: pieces of 256 KiB, shuffled, any dtype.
#pragma once

#include <vector>

#include "codec/adapter/shuffle.h"
#include "codec/piecewise.h"

namespace laconic {

class BytewiseCoder : public PieceCoder {
 public:
  explicit BytewiseCoder(DType dtype) : element_bytes_(size_of(dtype)) {}

  std::size_t encode(const std::uint8_t* x, std::size_t n, std::uint8_t* out) final {
    shuffled_.resize(n * element_bytes_);
    shuffle(x, n, element_bytes_, shuffled_.data());
    return pack(shuffled_, out);
  }
  bool decode(CodecBytes in, std::uint8_t* y, std::size_t n) final {
    shuffled_.resize(n * element_bytes_);
    if (!unpack(in, shuffled_)) return false;
    unshuffle(shuffled_.data(), n, element_bytes_, y);
    return true;
  }

 protected:
  [[nodiscard]] std::size_t raw_bytes(std::size_t n) const { return n * element_bytes_; }
  /// out has limit() bytes; 0: could not.
  virtual std::size_t pack(CodecBytes raw, std::uint8_t* out) = 0;
  /// True when exactly all of `raw` was filled.
  virtual bool unpack(CodecBytes in, CodecMutBytes raw) = 0;

 private:
  std::size_t element_bytes_;
  std::vector<std::uint8_t> shuffled_;
};

class BytewiseCodec : public PiecewiseCodec {
 public:
  [[nodiscard]] Promise promise() const final { return Promise::lossless; }
  [[nodiscard]] bool takes(DType dtype) const final { return is_valid(dtype); }

 protected:
  [[nodiscard]] std::size_t piece_values(DType dtype, Extents) const final {
    return (std::size_t{256} << 10) / size_of(dtype);
  }
};

}  // namespace laconic
