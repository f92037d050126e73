// Zstandard at its fastest regular level, after a byte shuffle.
#include <zstd.h>

#include <new>

#include "codec/adapter/bytewise.h"
#include "codec/registry.h"

namespace laconic {
namespace {

constexpr int level = 1;

class ZstdCoder final : public BytewiseCoder {
 public:
  using BytewiseCoder::BytewiseCoder;
  [[nodiscard]] std::size_t limit(std::size_t n) const override { return ZSTD_compressBound(raw_bytes(n)); }

 protected:
  std::size_t pack(CodecBytes raw, std::uint8_t* out) override {
    if (!packer_) packer_.reset(ZSTD_createCCtx());
    if (!packer_) throw std::bad_alloc();
    const std::size_t size =
        ZSTD_compressCCtx(packer_.get(), out, ZSTD_compressBound(raw.size()), raw.data(), raw.size(), level);
    return ZSTD_isError(size) != 0 ? 0 : size;
  }
  bool unpack(CodecBytes in, CodecMutBytes raw) override {
    if (!unpacker_) unpacker_.reset(ZSTD_createDCtx());
    if (!unpacker_) throw std::bad_alloc();
    return ZSTD_decompressDCtx(unpacker_.get(), raw.data(), raw.size(), in.data(), in.size()) == raw.size();
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
    void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> packer_;
  std::unique_ptr<ZSTD_DCtx, Free> unpacker_;
};

class ZstdCodec final : public BytewiseCodec {
 public:
  [[nodiscard]] CodecId id() const override { return CodecId::zstd; }
  [[nodiscard]] std::string_view name() const override { return "zstd"; }

 protected:
  [[nodiscard]] std::unique_ptr<PieceCoder> coder(const Grid& grid, Extents) const override {
    return std::make_unique<ZstdCoder>(grid.dtype);
  }
};

}  // namespace

const Codec& zstd_codec() {
  static const ZstdCodec codec;
  return codec;
}

}  // namespace laconic
