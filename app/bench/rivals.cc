#include "bench/rivals.h"

#include <fmt/core.h>
#include <lz4.h>
#include <zfp.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace laconic::app {
namespace {

/// LZ4 and zstd: bytes in, bytes out.
class ByteRival : public Rival {
 public:
  ByteRival(ConstArray x, std::size_t capacity) : x_(x), packed_(capacity), unpacked_(x.bytes()) {}
  [[nodiscard]] bool lossy() const override { return false; }
  [[nodiscard]] ConstArray decoded() const override { return {unpacked_.data(), x_.count, x_.dtype}; }

 protected:
  ConstArray x_;
  std::vector<char> packed_;
  std::vector<char> unpacked_;
  std::size_t size_ = 0;
};

class Lz4 final : public ByteRival {
 public:
  explicit Lz4(ConstArray x) : ByteRival(x, static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(x.bytes())))) {}
  [[nodiscard]] std::string name() const override { return "lz4"; }
  std::size_t compress() override {
    size_ =
        static_cast<std::size_t>(LZ4_compress_default(static_cast<const char*>(x_.data), packed_.data(),
                                                      static_cast<int>(x_.bytes()), static_cast<int>(packed_.size())));
    return size_;
  }
  void decompress() override {
    if (LZ4_decompress_safe(packed_.data(), unpacked_.data(), static_cast<int>(size_),
                            static_cast<int>(unpacked_.size())) < 0)
      throw Error(Code::internal, "lz4 could not decompress its own output");
  }
};

class Zstd final : public ByteRival {
 public:
  Zstd(ConstArray x, int level) : ByteRival(x, ZSTD_compressBound(x.bytes())), level_(level) {}
  [[nodiscard]] std::string name() const override { return fmt::format("zstd -{}", level_); }
  std::size_t compress() override {
    size_ = ZSTD_compress(packed_.data(), packed_.size(), x_.data, x_.bytes(), level_);
    if (ZSTD_isError(size_) != 0) throw Error(Code::internal, ZSTD_getErrorName(size_));
    return size_;
  }
  void decompress() override {
    if (ZSTD_isError(ZSTD_decompress(unpacked_.data(), unpacked_.size(), packed_.data(), size_)) != 0)
      throw Error(Code::internal, "zstd could not decompress its own output");
  }

 private:
  int level_;
};

/// zfp in fixed-accuracy mode on up to three dimensions (more are folded into the slowest).
class Zfp final : public Rival {
 public:
  Zfp(ConstArray x, const Dims& dims, double bound)
      : x_(x),
        original_(static_cast<const std::uint8_t*>(x.data), static_cast<const std::uint8_t*>(x.data) + x.bytes()),
        decoded_(original_),
        stream_(zfp_stream_open(nullptr), zfp_stream_close) {
    const zfp_type type = x.dtype == DType::f64 ? zfp_type_double : zfp_type_float;
    // Whole rows (or slabs) only: what is left over stays as it was in decoded_.
    const std::size_t fast = dims.empty() ? x.count : dims.back();
    const std::size_t middle = dims.size() > 2 ? dims[dims.size() - 2] : 1;
    if (dims.size() <= 1) {
      field_.reset(zfp_field_1d(original_.data(), type, x.count));
    } else if (dims.size() == 2) {
      field_.reset(zfp_field_2d(original_.data(), type, fast, x.count / fast));
    } else {
      field_.reset(zfp_field_3d(original_.data(), type, fast, middle, x.count / (fast * middle)));
    }
    covered_ = zfp_field_size(field_.get(), nullptr) * size_of(x.dtype);
    zfp_stream_set_accuracy(stream_.get(), bound);
    packed_.resize(zfp_stream_maximum_size(stream_.get(), field_.get()));
    bits_.reset(stream_open(packed_.data(), packed_.size()));
    zfp_stream_set_bit_stream(stream_.get(), bits_.get());
  }
  [[nodiscard]] std::string name() const override { return "zfp"; }
  [[nodiscard]] bool lossy() const override { return true; }
  std::size_t compress() override {
    zfp_field_set_pointer(field_.get(), original_.data());
    zfp_stream_rewind(stream_.get());
    const std::size_t size = zfp_compress(stream_.get(), field_.get());
    if (size == 0) throw Error(Code::internal, "zfp could not compress");
    return size + (x_.bytes() - covered_);
  }
  void decompress() override {
    zfp_field_set_pointer(field_.get(), decoded_.data());
    zfp_stream_rewind(stream_.get());
    if (zfp_decompress(stream_.get(), field_.get()) == 0)
      throw Error(Code::internal, "zfp could not decompress its own output");
  }
  [[nodiscard]] ConstArray decoded() const override { return {decoded_.data(), x_.count, x_.dtype}; }

 private:
  struct Closer {
    void operator()(zfp_field* f) const { zfp_field_free(f); }
    void operator()(bitstream* b) const { stream_close(b); }
  };
  ConstArray x_;
  std::vector<std::uint8_t> original_;  // zfp wants a pointer to non-const
  std::vector<std::uint8_t> decoded_;
  std::vector<std::uint8_t> packed_;
  std::unique_ptr<zfp_field, Closer> field_;
  std::unique_ptr<bitstream, Closer> bits_;
  std::unique_ptr<zfp_stream, void (*)(zfp_stream*)> stream_;
  std::size_t covered_ = 0;
};

}  // namespace

std::unique_ptr<Rival> make_zfp(ConstArray x, const Dims& dims, double bound) {
  if ((x.dtype != DType::f32 && x.dtype != DType::f64) || x.count == 0 || !(bound > 0)) return nullptr;
  return std::make_unique<Zfp>(x, dims, bound);
}

std::unique_ptr<Rival> make_lz4(ConstArray x) {
  if (x.bytes() > LZ4_MAX_INPUT_SIZE) return nullptr;
  return std::make_unique<Lz4>(x);
}

std::unique_ptr<Rival> make_zstd(ConstArray x, int level) { return std::make_unique<Zstd>(x, level); }

}  // namespace laconic::app
