// Codecs whose library was not there when Laconic was built: their frames can be checked, and that is all.
#include <string>

#include "codec/piecewise.h"
#include "codec/registry.h"
#include "core/error.h"

namespace laconic {
namespace {

class AbsentCodec final : public PiecewiseCodec {
 public:
  AbsentCodec(CodecId id, const char* name, Promise promise, const char* package)
      : id_(id), name_(name), promise_(promise), package_(package) {}

  [[nodiscard]] CodecId id() const override { return id_; }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Promise promise() const override { return promise_; }
  [[nodiscard]] bool takes(DType dtype) const override {
    return promise_ == Promise::lossless ? is_valid(dtype) : dtype == DType::f32 || dtype == DType::f64;
  }
  [[nodiscard]] bool available() const override { return false; }

 protected:
  [[nodiscard]] std::size_t piece_values(DType, Extents) const override { return most_piece_values; }
  [[nodiscard]] std::unique_ptr<PieceCoder> coder(const Grid&, Extents) const override {
    throw Error(Code::unsupported, "codec: " + std::string(name_) + " was not built in: install " + package_ +
                                       " (Debian's name), then configure and build Laconic again");
  }

 private:
  CodecId id_;
  const char* name_;
  Promise promise_;
  const char* package_;
};

}  // namespace

#if !defined(LACONIC_HAS_ZFP)
const Codec& zfp_codec() {
  static const AbsentCodec codec(CodecId::zfp, "zfp", Promise::bounded, "libzfp-dev");
  return codec;
}
const Codec& zfp_rate_codec() {
  static const AbsentCodec codec(CodecId::zfp_rate, "zfp-rate", Promise::rate, "libzfp-dev");
  return codec;
}
#endif
#if !defined(LACONIC_HAS_LZ4)
const Codec& lz4_codec() {
  static const AbsentCodec codec(CodecId::lz4, "lz4", Promise::lossless, "liblz4-dev");
  return codec;
}
const Codec& lz4hc_codec() {
  static const AbsentCodec codec(CodecId::lz4hc, "lz4hc", Promise::lossless, "liblz4-dev");
  return codec;
}
#endif
#if !defined(LACONIC_HAS_ZSTD)
const Codec& zstd_codec() {
  static const AbsentCodec codec(CodecId::zstd, "zstd", Promise::lossless, "libzstd-dev");
  return codec;
}
#endif

}  // namespace laconic
