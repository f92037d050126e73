// zfp (P. Lindstrom, "Fixed-rate compressed floating-point arrays", TVCG 2014) in fixed-accuracy and in fixed-rate
// mode, by pieces: lines where nothing is known of the array, whole rows or slabs where its extents are.
//
// zfp knows no NaN and no infinity, and one huge value spoils its neighbours. Where a block has no value of any size,
// its scale is infinite, and what it makes of them depends on the processor. So before, values that it cannot say are
// replaced by the one before, tiny ones by 0; and after, in fixed-accuracy mode, the piece is decoded again and every
// value checked. What was replaced or fails is listed with its exact bits. Where that is more than one in eight, and
// where zfp's reversible mode (for lossless grids) does not give the same bits back, the piece is coded losslessly by
// slice.
//
// A piece is u8 mode (0 slice, 1 zfp) and three zeros; with slice then its payload, with zfp: u32 length of a row, u32
// rows of a slab (0: no such axis), u32 bytes of the zfp stream, the stream, u32 place of each listed value, their
// bits.
#include <zfp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "codec/float_check.h"
#include "codec/piecewise.h"
#include "codec/registry.h"
#include "core/error.h"

namespace laconic {
namespace {

constexpr std::size_t line_values = 16384;
constexpr std::size_t box_values = std::size_t{1} << 18;
constexpr std::size_t block_side = 4;
constexpr std::size_t head_bytes = 16;
constexpr std::size_t slice_head_bytes = 4;
constexpr std::uint8_t mode_slice = 0;
constexpr std::uint8_t mode_zfp = 1;

/// Of an array's axes those along which its pieces are cut: four slabs, or else four rows, must not be too large for
/// one.
Extents cut_along(Extents e) {
  if (e.fast == 0 || e.fast > box_values / block_side) return {};
  if (e.middle > box_values / block_side / e.fast) return {e.fast, 0};
  return e;
}

/// As many axes as serve to cut n values in whole rows and slabs.
Extents fitting(Extents e, std::size_t n) {
  if (e.fast == 0 || n % e.fast != 0 || n == e.fast) return {};
  const std::size_t rows = n / e.fast;
  if (e.middle == 0 || rows % e.middle != 0 || rows == e.middle) return {e.fast, 0};
  return e;
}

struct FieldCloser {
  void operator()(zfp_field* f) const { zfp_field_free(f); }
  void operator()(zfp_stream* s) const { zfp_stream_close(s); }
  void operator()(bitstream* b) const { stream_close(b); }
};

/// zfp set up for one piece of memory.
template <class T>
class Zfp {
 public:
  Zfp(T* values, std::size_t n, Extents e, const Grid& grid) : stream_(zfp_stream_open(nullptr)) {
    constexpr zfp_type type = sizeof(T) == 8 ? zfp_type_double : zfp_type_float;
    unsigned axes = 1;
    if (e.middle != 0) {
      field_.reset(zfp_field_3d(values, type, e.fast, e.middle, n / (e.fast * e.middle)));
      axes = 3;
    } else if (e.fast != 0) {
      field_.reset(zfp_field_2d(values, type, e.fast, n / e.fast));
      axes = 2;
    } else {
      field_.reset(zfp_field_1d(values, type, n));
    }
    if (!field_ || !stream_) throw std::bad_alloc();
    if (grid.lossless()) {
      zfp_stream_set_reversible(stream_.get());
    } else if (std::isinf(grid.bound)) {
      zfp_stream_set_rate(stream_.get(), grid.step, type, axes, zfp_false);
    } else {
      zfp_stream_set_accuracy(stream_.get(), grid.bound);
    }
  }
  /// Bytes that it may read or write for such a piece.
  [[nodiscard]] std::size_t most_bytes() const { return zfp_stream_maximum_size(stream_.get(), field_.get()); }
  /// Both: 0 when it failed. `words` holds most_bytes().
  std::size_t encode(std::vector<std::uint64_t>& words) {
    open(words);
    return zfp_compress(stream_.get(), field_.get());
  }
  std::size_t decode(std::vector<std::uint64_t>& words) {
    open(words);
    return zfp_decompress(stream_.get(), field_.get());
  }

 private:
  void open(std::vector<std::uint64_t>& words) {
    bits_.reset(stream_open(words.data(), words.size() * sizeof(std::uint64_t)));
    zfp_stream_set_bit_stream(stream_.get(), bits_.get());
    zfp_stream_rewind(stream_.get());
  }
  std::unique_ptr<zfp_field, FieldCloser> field_;
  std::unique_ptr<zfp_stream, FieldCloser> stream_;
  std::unique_ptr<bitstream, FieldCloser> bits_;
};

template <class T>
class ZfpCoder final : public PieceCoder {
 public:
  ZfpCoder(const Grid& grid, Extents extents) : grid_(grid), extents_(extents) {
    if (!std::isfinite(grid.bound)) {
      largest_ = std::numeric_limits<T>::max();
    } else if (!grid.lossless()) {
      bound_ = checked_bound<T>(grid.bound);
      // Larger ones would need more bits than zfp's integers have.
      largest_ = static_cast<T>(std::min(std::ldexp(grid.bound, sizeof(T) == 8 ? 50 : 24),
                                         static_cast<double>(std::numeric_limits<T>::max())));
    } else {
      largest_ = std::numeric_limits<T>::max();
    }
  }

  [[nodiscard]] std::size_t limit(std::size_t n) const override {
    return std::max(slice_head_bytes + slice_codec().capacity(grid_.dtype, n), n * sizeof(T));
  }

  std::size_t encode(const std::uint8_t* x, std::size_t n, std::uint8_t* out) override {
    values_.resize(n);
    std::memcpy(values_.data(), x, n * sizeof(T));
    replace_what_zfp_cannot_say();
    const Extents shape = fitting(extents_, n);
    Zfp<T> zfp(values_.data(), n, shape, grid_);
    words_.assign(words_for(zfp), 0);
    const std::size_t size = zfp.encode(words_);
    if (size == 0 || !list_exceptions(x, n, shape)) return encode_by_slice(x, n, out);
    const std::size_t total = head_bytes + size + listed_.size() * (sizeof(std::uint32_t) + sizeof(T));
    if (total >= n * sizeof(T)) return 0;
    write(x, shape, size, out);
    return total;
  }

  bool decode(CodecBytes in, std::uint8_t* y, std::size_t n) override {
    if (in.size() >= slice_head_bytes && in[0] == mode_slice) {
      const Coded coded{.grid = Grid{.dtype = grid_.dtype}, .count = n};
      slice_codec().decode(coded, in.subspan(slice_head_bytes), 0, {y, n, grid_.dtype}, 1);
      return true;
    }
    if (in.size() < head_bytes || in[0] != mode_zfp) return false;
    const Extents shape{load_as<std::uint32_t>(&in[4]), load_as<std::uint32_t>(&in[8])};
    const Extents fits = fitting(shape, n);
    if (fits.fast != shape.fast || fits.middle != shape.middle) return false;
    const std::size_t size = load_as<std::uint32_t>(&in[12]);
    if (size > in.size() - head_bytes) return false;
    const std::size_t rest = in.size() - head_bytes - size;
    if (rest % (sizeof(std::uint32_t) + sizeof(T)) != 0) return false;
    values_.resize(n);
    Zfp<T> zfp(values_.data(), n, shape, grid_);
    // zfp reads as far as the bits tell it to, which for damaged ones may be further than the stream goes.
    words_.assign(words_for(zfp), 0);
    if (size > words_.size() * sizeof(std::uint64_t)) return false;
    std::memcpy(words_.data(), in.data() + head_bytes, size);
    if (zfp.decode(words_) == 0) return false;
    std::memcpy(y, values_.data(), n * sizeof(T));
    const std::size_t listed = rest / (sizeof(std::uint32_t) + sizeof(T));
    const std::uint8_t* places = in.data() + head_bytes + size;
    const std::uint8_t* exact = places + listed * sizeof(std::uint32_t);
    for (std::size_t i = 0; i < listed; ++i) {
      const std::size_t place = load_as<std::uint32_t>(places + i * sizeof(std::uint32_t));
      if (place >= n) return false;
      std::memcpy(y + place * sizeof(T), exact + i * sizeof(T), sizeof(T));
    }
    return true;
  }

 private:
  static std::size_t words_for(const Zfp<T>& zfp) { return zfp.most_bytes() / sizeof(std::uint64_t) + 16; }

  /// Below this, 2^(bits - 2) / |v| overflows.
  static constexpr T tiny = sizeof(T) == 8 ? T(0x1p-961) : T(0x1p-97);

  void replace_what_zfp_cannot_say() {
    T before = 0;
    for (T& v : values_) {
      if (std::abs(v) < tiny && !grid_.lossless()) {
        before = v = 0;
      } else if (std::abs(v) <= largest_) {
        before = v;
      } else {
        v = before;
      }
    }
  }

  /// False: too many. values_ holds what was encoded, words_ the stream.
  bool list_exceptions(const std::uint8_t* x, std::size_t n, Extents shape) {
    listed_.clear();
    const bool rate = std::isinf(grid_.bound);
    if (!rate) {
      decoded_.resize(n);
      if (Zfp<T>(decoded_.data(), n, shape, grid_).decode(words_) == 0) return false;
    }
    if (grid_.lossless()) return std::memcmp(decoded_.data(), x, n * sizeof(T)) == 0;
    const std::size_t most = n / 8;
    for (std::size_t i = 0; i < n; ++i) {
      const T v = load_as<T>(x + i * sizeof(T));
      const bool good = rate ? std::isfinite(v) : std::abs(v - decoded_[i]) <= bound_;
      if (good) continue;
      if (listed_.size() == most) return false;
      listed_.push_back(static_cast<std::uint32_t>(i));
    }
    return true;
  }

  std::size_t encode_by_slice(const std::uint8_t* x, std::size_t n, std::uint8_t* out) const {
    store_as(out, std::uint32_t{mode_slice});
    const CodecMutBytes to(out + slice_head_bytes, slice_codec().capacity(grid_.dtype, n));
    return slice_head_bytes + slice_codec().encode({x, n, grid_.dtype}, Grid{.dtype = grid_.dtype}, {}, to, 1, nullptr);
  }

  void write(const std::uint8_t* x, Extents shape, std::size_t size, std::uint8_t* out) const {
    store_as(out, std::uint32_t{mode_zfp});
    store_as(out + 4, static_cast<std::uint32_t>(shape.fast));
    store_as(out + 8, static_cast<std::uint32_t>(shape.middle));
    store_as(out + 12, static_cast<std::uint32_t>(size));
    std::memcpy(out + head_bytes, words_.data(), size);
    std::uint8_t* at = out + head_bytes + size;
    for (const std::uint32_t place : listed_) {
      store_as(at, place);
      at += sizeof place;
    }
    for (const std::uint32_t place : listed_) {
      std::memcpy(at, x + place * sizeof(T), sizeof(T));
      at += sizeof(T);
    }
  }

  Grid grid_;
  Extents extents_;
  T bound_ = 0;
  T largest_ = 0;
  std::vector<T> values_, decoded_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> listed_;
};

class ZfpCodec final : public PiecewiseCodec {
 public:
  explicit ZfpCodec(bool rate) : rate_(rate) {}
  [[nodiscard]] CodecId id() const override { return rate_ ? CodecId::zfp_rate : CodecId::zfp; }
  [[nodiscard]] std::string_view name() const override { return rate_ ? "zfp-rate" : "zfp"; }
  [[nodiscard]] Promise promise() const override { return rate_ ? Promise::rate : Promise::bounded; }
  [[nodiscard]] bool takes(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }
  /// Whole bits for a block; one and an exponent are the least. (zfp takes more without saying so, and rounds up.)
  [[nodiscard]] Rates rates(DType dtype, Extents e) const override {
    if (!rate_) return {};
    const Extents axes = cut_along(e);
    const double block = axes.fast == 0 ? 4 : axes.middle == 0 ? 16 : 64;
    return {(dtype == DType::f64 ? 12 : 9) / block, 1 / block};
  }

 protected:
  [[nodiscard]] std::size_t piece_values(DType, Extents e) const override {
    const Extents axes = cut_along(e);
    if (axes.fast == 0) return line_values;
    const std::size_t unit = block_side * axes.fast * std::max<std::size_t>(axes.middle, 1);
    return box_values / unit * unit;
  }
  [[nodiscard]] std::unique_ptr<PieceCoder> coder(const Grid& grid, Extents extents) const override {
    const Extents axes = cut_along(extents);
    if (grid.dtype == DType::f64) return std::make_unique<ZfpCoder<double>>(grid, axes);
    return std::make_unique<ZfpCoder<float>>(grid, axes);
  }

 private:
  bool rate_;
};

}  // namespace

const Codec& zfp_codec() {
  static const ZfpCodec codec(false);
  return codec;
}

const Codec& zfp_rate_codec() {
  static const ZfpCodec codec(true);
  return codec;
}

}  // namespace laconic
