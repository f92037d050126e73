// From bytes to integers. Nothing is taken on trust: whatever is no chunk of version 1 is refused.
#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/slice/chunk.h"
#include "codec/slice/chunk_integers.h"

namespace laconic::slice {
namespace {

/// Takes pieces off the front of a chunk, never past its end.
class Reader {
 public:
  Reader(const std::uint8_t* p, std::size_t n) : p_(p), left_(n) {}
  const std::uint8_t* take(std::size_t n) {
    if (n > left_) return nullptr;
    const std::uint8_t* at = p_;
    p_ += n;
    left_ -= n;
    return at;
  }
  template <class T>
  bool get(T& v) {
    const auto* at = take(sizeof(T));
    if (at == nullptr) return false;
    v = load<T>(at);
    return true;
  }
  [[nodiscard]] std::size_t left() const { return left_; }

 private:
  const std::uint8_t* p_;
  std::size_t left_;
};

/// One block as its code and entry describe it.
struct Block {
  int w = 0;
  int d = 0;
  Extra extra = Extra::wide;
  bool fill = false;
  std::size_t exact_bytes = 0;
  [[nodiscard]] bool marked() const { return fill || extra == Extra::listed || extra == Extra::terms; }
  [[nodiscard]] bool lossless() const { return extra == Extra::lossless || extra == Extra::raw; }
};

template <class I>
class ChunkReader {
 public:
  ChunkReader(const std::uint8_t* in, std::size_t size, const ChunkShape& shape, Chunk<I>& c)
      : in_(in, size), shape_(shape), c_(c) {}

  bool read() {
    c_.marks.fill(0);
    c_.terms.clear();
    c_.origin = Origin::elements;
    std::uint32_t word = 0;
    if (!in_.get(word)) return false;
    word_ = Word::unpack(word);
    switch (word_.kind) {
      case Kind::constant:
        if (!read_base() || in_.left() != 0) return false;
        c_.q.fill(base_);
        c_.origin = Origin::constant;
        c_.choice.base = base_;
        return true;
      case Kind::raw:
        return read_raw();
      case Kind::fill:
        return !shape_.exact_only && read_fill() && in_.left() == 0 && set_all_fill();
      case Kind::coded:
        break;
    }
    return read_coded();
  }

 private:
  bool read_base() {
    base_ = static_cast<I>(word_.base);
    return !word_.long_base || in_.get(base_);
  }
  bool read_fill() {
    if (shape_.sum || shape_.element_bytes == 8) return in_.get(fill_);
    std::uint32_t v = 0;
    if (!in_.get(v)) return false;
    fill_ = v;
    return shape_.element_bytes == 4 || v <= 0xFFFF;
  }
  bool read_raw() {
    const auto bytes = static_cast<std::size_t>(c_.count * shape_.element_bytes);
    const auto* p = in_.take(pad4(bytes));
    if (shape_.sum || p == nullptr || in_.left() != 0) return false;
    for (int i = 0; i < c_.count; ++i) {
      const std::uint64_t e = element(p, i);
      const auto ui = static_cast<std::size_t>(i);
      if (shape_.exact_only) {
        c_.q[ui] = shape_.floating ? order_map<I>(e, shape_.element_bytes) : static_cast<I>(e);
      } else {
        c_.exact[ui] = e;
        c_.marks[ui / 64] |= std::uint64_t{1} << (ui % 64);
      }
    }
    hold_marked(c_);
    return true;
  }
  [[nodiscard]] std::uint64_t element(const std::uint8_t* p, int i) const {
    std::uint64_t v = 0;
    std::memcpy(&v, p + static_cast<std::ptrdiff_t>(i) * shape_.element_bytes,
                static_cast<std::size_t>(shape_.element_bytes));
    return v;
  }
  bool set_all_fill() {
    for (int i = 0; i < c_.count; ++i) set_mark(i, fill_);
    hold_marked(c_);
    return true;
  }
  void set_mark(int i, std::uint64_t key) {
    const auto ui = static_cast<std::size_t>(i);
    c_.marks[ui / 64] |= std::uint64_t{1} << (ui % 64);
    if (shape_.sum) {
      c_.terms.emplace_back(std::bit_cast<double>(key));
    } else {
      c_.exact[ui] = key;
    }
  }

  bool read_codes() {
    if (word_.index_planes == Word::plain_codes) {
      const auto* p = in_.take(chunk_blocks);
      if (p == nullptr) return false;
      std::copy_n(p, chunk_blocks, codes_.begin());
      return true;
    }
    const auto* planes = in_.take(4 * word_.index_planes);
    const auto* dictionary = in_.take(pad4(word_.dictionary));
    if (planes == nullptr || dictionary == nullptr) return false;
    for (std::size_t b = 0; b < chunk_blocks; ++b) {
      unsigned k = 0;
      for (unsigned j = 0; j < word_.index_planes; ++j) k |= (load<std::uint32_t>(planes + 4 * j) >> b & 1) << j;
      if (k >= word_.dictionary) return false;
      codes_[b] = dictionary[k];
    }
    return true;
  }
  bool read_block_shapes() {
    for (std::size_t b = 0; b < chunk_blocks; ++b) {
      Block& k = blocks_[b];
      k.fill = (fill_blocks_ >> b & 1) != 0;
      const std::uint8_t code = codes_[b];
      if ((code & 31) != 31) {
        k.w = code & 31;
        if (sparse_of(code) > k.w) return false;
        k.d = k.w - sparse_of(code);
        continue;
      }
      std::uint32_t e = 0;
      if (code != code_extended || !in_.get(e)) return false;
      const Entry entry = Entry::unpack(e);
      k.w = entry.w;
      k.d = entry.d;
      k.extra = entry.extra;
      k.exact_bytes = 4 * std::size_t{entry.exact_units};
      if (!valid(k)) return false;
    }
    return true;
  }
  [[nodiscard]] bool valid(const Block& k) const {
    if (k.w > integer_bits<I> || k.d > k.w || k.extra > Extra::raw) return false;
    if (k.extra == Extra::wide) return k.exact_bytes == 0;
    if (k.fill || shape_.exact_only || shape_.sum != (k.extra == Extra::terms)) return false;
    if (k.lossless() && word_.predictor == Predictor::second) return false;
    const auto e = static_cast<std::size_t>(shape_.element_bytes);
    if (k.extra == Extra::lossless) return sizeof(I) >= e && k.exact_bytes == pad4(e);
    if (k.extra == Extra::raw) return k.w == 0 && k.exact_bytes == block_values * e;
    return true;
  }

  bool read_coded() {
    if (!word_.valid_codes() || !read_base()) return false;
    if (word_.has_fill && (shape_.exact_only || !in_.get(fill_blocks_) || !read_fill())) return false;
    if (!read_codes() || !read_block_shapes()) return false;
    std::size_t dense = 0;
    std::size_t sparse = 0;
    for (const Block& k : blocks_) {
      dense += static_cast<std::size_t>(8 * k.d);
      sparse += static_cast<std::size_t>(k.w - k.d + (k.marked() ? 1 : 0));
    }
    dense_ = in_.take(dense);
    masks_ = in_.take(sparse);
    if (dense_ == nullptr || masks_ == nullptr) return false;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < sparse; ++i) bytes += static_cast<std::size_t>(std::popcount(masks_[i]));
    bytes_ = in_.take(bytes);
    if (bytes_ == nullptr || in_.take(pad4(sparse + bytes) - sparse - bytes) == nullptr) return false;
    c_.origin = Origin::coded;
    c_.choice = {word_.predictor, base_};
    I previous = base_;
    I slope = 0;
    for (int b = 0; b < chunk_blocks; ++b)
      if (!read_block(b, previous, slope)) return false;
    return in_.left() == 0;
  }
  std::uint64_t next_sparse() {
    std::uint64_t plane = 0;
    const std::uint8_t mask = *masks_++;
    for (int g = 0; g < 8; ++g)
      if ((mask >> g & 1) != 0) plane |= std::uint64_t{*bytes_++} << (8 * g);
    return plane;
  }
  bool read_block(int b, I& previous, I& slope) {
    const Block& k = blocks_[static_cast<std::size_t>(b)];
    std::array<Unsigned<I>, block_values> z{};
    for (int r = 0; r < k.w; ++r) {
      std::uint64_t plane = 0;
      if (r < k.d) {
        plane = load<std::uint64_t>(dense_);
        dense_ += 8;
      } else {
        plane = next_sparse();
      }
      for (; plane != 0; plane &= plane - 1)
        z[static_cast<std::size_t>(std::countr_zero(plane))] |= Unsigned<I>{1} << r;
    }
    const std::uint64_t marks = k.marked() ? marks_of(next_sparse()) : 0;
    I* q = &c_.q[static_cast<std::size_t>(b * block_values)];
    if (k.lossless()) {
      std::fill_n(q, block_values, previous);
      return read_lossless(b, k, z.data());
    }
    for (int i = 0; i < block_values; ++i) {
      const I r = unzigzag<I>(z[static_cast<std::size_t>(i)]);
      if (word_.predictor == Predictor::none) {
        q[i] = wrap_add(base_, r);
      } else {
        slope = word_.predictor == Predictor::second ? wrap_add(slope, r) : r;
        q[i] = wrap_add(previous, slope);
      }
      previous = q[i];
    }
    // A chain starts at its base: so a chunk is constant exactly when all its residuals are zero.
    if (b == 0 && word_.predictor != Predictor::none && q[0] != base_) return false;
    return marks == 0 ? k.exact_bytes == 0 : read_marked(b, k, marks);
  }
  /// No value beyond the count is marked.
  bool read_marked(int b, const Block& k, std::uint64_t marks) {
    const auto n = static_cast<std::size_t>(std::popcount(marks));
    const int valid = std::clamp(c_.count - b * block_values, 0, block_values);
    if (valid < block_values && (valid == 0 || (marks >> valid) != 0)) return false;
    if (k.fill) {
      for (std::uint64_t m = marks; m != 0; m &= m - 1) set_mark(b * block_values + std::countr_zero(m), fill_);
      return true;
    }
    const auto* p = in_.take(k.exact_bytes);
    if (p == nullptr) return false;
    if (k.extra == Extra::terms) return read_terms(b, marks, p, k.exact_bytes);
    if (k.exact_bytes != pad4(n * static_cast<std::size_t>(shape_.element_bytes))) return false;
    int j = 0;
    for (std::uint64_t m = marks; m != 0; m &= m - 1) set_mark(b * block_values + std::countr_zero(m), element(p, j++));
    return true;
  }
  bool read_terms(int b, std::uint64_t marks, const std::uint8_t* p, std::size_t size) {
    const auto n = static_cast<std::size_t>(std::popcount(marks));
    if (size < pad4(n)) return false;
    const std::uint8_t* counts = p;
    std::size_t total = 0;
    for (std::size_t i = 0; i < n; ++i) total += counts[i];
    if (size != pad4(n) + 8 * total) return false;
    const std::uint8_t* t = p + pad4(n);
    c_.marks[static_cast<std::size_t>(b)] |= marks;
    for (std::size_t i = 0; i < n; ++i) {
      Expansion e;
      for (int j = 0; j < counts[i]; ++j, t += 8) e.add(load<double>(t));
      c_.terms.push_back(std::move(e));
    }
    return true;
  }
  bool read_lossless(int b, const Block& k, const Unsigned<I>* z) {
    const auto* p = in_.take(k.exact_bytes);
    if (p == nullptr) return false;
    I v = order_map<I>(element(p, 0), shape_.element_bytes);
    for (int i = 0; i < block_values; ++i) {
      const int at = b * block_values + i;
      v = wrap_add(v, unzigzag<I>(z[i]));
      if (at >= c_.count) break;
      set_mark(at, k.extra == Extra::raw ? element(p, i) : order_unmap(v, shape_.element_bytes));
    }
    return true;
  }

  Reader in_;
  const ChunkShape& shape_;
  Chunk<I>& c_;
  Word word_;
  I base_ = 0;
  std::uint64_t fill_ = 0;
  std::uint32_t fill_blocks_ = 0;
  std::array<std::uint8_t, chunk_blocks> codes_{};
  std::array<Block, chunk_blocks> blocks_{};
  const std::uint8_t* dense_ = nullptr;
  const std::uint8_t* masks_ = nullptr;
  const std::uint8_t* bytes_ = nullptr;
};

}  // namespace

template <class I>
bool read_chunk(const std::uint8_t* in, std::size_t size, const ChunkShape& shape, Chunk<I>& c) {
  return ChunkReader<I>(in, size, shape, c).read();
}

template bool read_chunk(const std::uint8_t*, std::size_t, const ChunkShape&, Chunk<std::int32_t>&);
template bool read_chunk(const std::uint8_t*, std::size_t, const ChunkShape&, Chunk<std::int64_t>&);

}  // namespace laconic::slice
