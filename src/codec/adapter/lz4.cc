// LZ4 and its slower, denser encoder LZ4 HC; one stream format, two codecs. Byte shuffle before.
#include <lz4.h>
#include <lz4hc.h>

#include "codec/adapter/bytewise.h"
#include "codec/registry.h"

namespace laconic {
namespace {

constexpr int hc_level = LZ4HC_CLEVEL_DEFAULT;

class Lz4Coder final : public BytewiseCoder {
 public:
  Lz4Coder(DType dtype, bool dense) : BytewiseCoder(dtype), dense_(dense) {}
  [[nodiscard]] std::size_t limit(std::size_t n) const override {
    return static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(raw_bytes(n))));
  }

 protected:
  std::size_t pack(CodecBytes raw, std::uint8_t* out) override {
    const auto* from = reinterpret_cast<const char*>(raw.data());
    auto* to = reinterpret_cast<char*>(out);
    const auto size = static_cast<int>(raw.size());
    const int room = LZ4_compressBound(size);
    return static_cast<std::size_t>(dense_ ? LZ4_compress_HC(from, to, size, room, hc_level)
                                           : LZ4_compress_default(from, to, size, room));
  }
  bool unpack(CodecBytes in, CodecMutBytes raw) override {
    return LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(raw.data()),
                               static_cast<int>(in.size()),
                               static_cast<int>(raw.size())) == static_cast<int>(raw.size());
  }

 private:
  bool dense_;
};

class Lz4Codec final : public BytewiseCodec {
 public:
  explicit Lz4Codec(bool dense) : dense_(dense) {}
  [[nodiscard]] CodecId id() const override { return dense_ ? CodecId::lz4hc : CodecId::lz4; }
  [[nodiscard]] std::string_view name() const override { return dense_ ? "lz4hc" : "lz4"; }

 protected:
  [[nodiscard]] std::unique_ptr<PieceCoder> coder(const Grid& grid, Extents) const override {
    return std::make_unique<Lz4Coder>(grid.dtype, dense_);
  }

 private:
  bool dense_;
};

}  // namespace

const Codec& lz4_codec() {
  static const Lz4Codec codec(false);
  return codec;
}

const Codec& lz4hc_codec() {
  static const Lz4Codec codec(true);
  return codec;
}

}  // namespace laconic
