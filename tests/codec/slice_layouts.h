// Chunks of every layout that docs/format.md allows, and some that it just forbids: what encoders write is a small part
// of what decoders may meet.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "codec/slice/kernels.h"
#include "codec/slice/layout.h"
#include "support/sample_data.h"

namespace laconic::test {

using Buffer = std::vector<std::uint8_t>;

inline int below(Random& random, int n) { return static_cast<int>(random.below(static_cast<std::size_t>(n))); }
inline bool chance(Random& random, int percent) { return below(random, 100) < percent; }
inline std::int64_t of_any_length(Random& random) {
  return static_cast<std::int64_t>(random.bits()) >> random.below(64);
}

/// Numbers that sums have rules of their own for, and others.
inline double special(Random& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (below(random, 9)) {
    case 0:
      return -0.0;
    case 1:
      return 0.0;
    case 2:
      return std::bit_cast<double>(0xFFF8000000001234U);  // a NaN that no sum may keep
    case 3:
      return infinity;
    case 4:
      return -infinity;
    case 5:
      return 1e30;
    case 6:
      return std::numeric_limits<double>::denorm_min();
    case 7:
      return chance(random, 50) ? std::numeric_limits<double>::max() : -0x1.0000000000003p+1022;
    default:
      return std::bit_cast<double>(random.bits());
  }
}

/// Writes one chunk, valid or nearly so.
class ChunkWriter {
 public:
  ChunkWriter(Random& random, const slice::Params& p, int count) : random_(random), p_(p), count_(count) {}

  Buffer write(slice::Predictor predictor) {
    const int kind = below(random_, 20);
    if (kind == 0)
      constant();
    else if (kind == 1 && !p_.shape.sum)
      raw();
    else if (kind == 2 && !p_.shape.exact_only)
      fill();
    else
      coded(predictor);
    return out_;
  }

 private:
  struct Block {
    int w = 0;
    int d = 0;
    std::uint8_t code = 0;
    slice::Extra extra = slice::Extra::wide;
    std::uint64_t marks = 0;
    Buffer exact{};
  };

  template <class T>
  void put(T v) {
    out_.resize(out_.size() + sizeof v);
    std::memcpy(out_.data() + out_.size() - sizeof v, &v, sizeof v);
  }
  void pad(std::uint8_t with) { out_.resize(slice::pad4(out_.size()), with); }
  [[nodiscard]] bool often() { return chance(random_, 50); }
  [[nodiscard]] int width() const { return p_.wide ? 64 : 32; }

  /// The word, with a base in it or behind it.
  void put_word(slice::Word w) {
    w.long_base = often();
    w.base = often() ? below(random_, 1 << 19) - (1 << 18) : 0;
    put(w.pack());
    if (!w.long_base) return;
    if (p_.wide)
      put(of_any_length(random_));
    else
      put(static_cast<std::int32_t>(of_any_length(random_)));
  }
  void put_fill_value() {
    const double v = special(random_);
    if (p_.shape.sum || p_.shape.element_bytes == 8)
      put(v);
    else if (p_.shape.element_bytes == 4)
      put(static_cast<float>(v));
    else
      put(static_cast<std::uint32_t>(random_.bits() & (chance(random_, 3) ? 0xFFFFF : 0xFFFF)));
  }

  /// With bits set that readers of a constant chunk do not look at.
  void constant() {
    put_word({.kind = slice::Kind::constant,
              .predictor = static_cast<slice::Predictor>(below(random_, 4)),
              .has_fill = often(),
              .index_planes = static_cast<std::uint32_t>(below(random_, 8))});
  }
  void raw() {
    put(slice::Word{.kind = slice::Kind::raw, .predictor = static_cast<slice::Predictor>(below(random_, 4))}.pack());
    const bool same = often();
    std::uint64_t bits = random_.bits();
    for (int i = 0; i < count_; ++i) {
      if (!same) bits = random_.bits();
      add_bytes(out_, bits, p_.shape.element_bytes);
    }
    pad(0);
  }
  void fill() {
    put(slice::Word{.kind = slice::Kind::fill, .has_fill = often()}.pack());
    put_fill_value();
  }

  void coded(slice::Predictor predictor) {
    draw_blocks();
    if (!p_.shape.exact_only && chance(random_, 40)) draw_exact_parts(predictor);
    const Buffer dictionary = draw_dictionary();
    const bool has_fill = !p_.shape.exact_only && chance(random_, 30);
    put_word({.predictor = predictor,
              .has_fill = has_fill,
              .index_planes = index_planes_,
              .dictionary = static_cast<std::uint32_t>(std::max<std::size_t>(1, dictionary.size()))});
    if (has_fill) {
      fill_blocks_ = chance(random_, 30) ? 0 : static_cast<std::uint32_t>(random_.bits() & random_.bits());
      for (std::size_t b = 0; b < blocks_.size(); ++b)
        if (blocks_[b].extra != slice::Extra::wide && !chance(random_, 2)) fill_blocks_ &= ~(std::uint32_t{1} << b);
      put(fill_blocks_);
      put_fill_value();
    }
    put_codes(dictionary);
    put_entries();
    put_planes();
    for (const Block& b : blocks_) out_.insert(out_.end(), b.exact.begin(), b.exact.end());
    spoil();
  }

  /// Chunks of one code, of narrow or wide blocks, of few blocks with planes, of blocks extended without need.
  void draw_blocks() {
    const int style = below(random_, 6);
    const int most = std::array{0, 8, 30, width(), 3, 3}[static_cast<std::size_t>(style)];
    const bool same = chance(random_, 20);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (same && b > 0)
        blocks_[b] = blocks_[0];
      else if (style != 5 || b % 8 == 4)
        blocks_[b] = draw_block(below(random_, most + 1), style == 3 && chance(random_, 30));
    }
  }
  Block draw_block(int w, bool extended) {
    if (extended || w > slice::max_code_width)
      return {.w = w, .d = below(random_, w + 1), .code = slice::code_extended};
    const int s = often() ? 7 : std::min(w, below(random_, 7));
    return {.w = w, .d = s == 7 ? 0 : w - s, .code = static_cast<std::uint8_t>(w | s << 5)};
  }

  /// Some blocks store elements, or sums of some, as they are.
  void draw_exact_parts(slice::Predictor predictor) {
    const int share = 1 + below(random_, 60);
    const bool whole = predictor != slice::Predictor::second || chance(random_, 3);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (!chance(random_, share)) continue;
      Block& k = blocks_[b];
      k.code = slice::code_extended;
      k.marks = draw_marks(static_cast<int>(b));
      if (p_.shape.sum) {
        k.extra = slice::Extra::terms;
        draw_terms(k);
      } else {
        const int choice = below(random_, whole ? 3 : 1);
        k.extra = std::array{slice::Extra::listed, slice::Extra::lossless, slice::Extra::raw}[std::size_t(choice)];
        if (k.extra == slice::Extra::lossless && p_.shape.element_bytes == 8 && !chance(random_, 3))
          k.extra = slice::Extra::raw;
        if (k.extra == slice::Extra::raw) k.w = k.d = 0;
        draw_elements(k);
      }
      if (chance(random_, 1)) k.exact.resize(k.exact.size() + 4);
    }
  }
  static void add_bytes(Buffer& to, std::uint64_t bits, int bytes) {
    for (int i = 0; i < bytes; ++i) to.push_back(static_cast<std::uint8_t>(bits >> 8 * i));
  }
  void draw_elements(Block& k) {
    const int e = p_.shape.element_bytes;
    const int n = k.extra == slice::Extra::raw        ? slice::block_values
                  : k.extra == slice::Extra::lossless ? 1
                                                      : std::popcount(k.marks);
    const bool same = often();
    const bool on_grid = chance(random_, 20);
    for (int i = 0; i < n; ++i) {
      const double v = on_grid ? below(random_, 50) * p_.grid.step : special(random_);
      const std::uint64_t bits = e == 8   ? std::bit_cast<std::uint64_t>(v)
                                 : e == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(v))
                                          : random_.bits();
      for (int repeat = same ? n - i : 1; repeat > 0; --repeat) add_bytes(k.exact, bits, e);
      if (same) break;
    }
    k.exact.resize(slice::pad4(k.exact.size()));
  }
  /// Terms that overlap, too, and are zero, and in no order; and pairs where only the small one says how to round.
  void draw_terms(Block& k) {
    const int n = std::popcount(k.marks);
    const int most = chance(random_, 5) ? 20 : 3;
    Buffer terms;
    for (int i = 0; i < n; ++i) {
      const bool tie = chance(random_, 20);
      const int count = tie ? 2 : below(random_, most + 1);
      k.exact.push_back(static_cast<std::uint8_t>(count));
      for (int j = 0; j < count; ++j) {
        const double v = tie ? half_way(j) : often() ? special(random_) : std::ldexp(1.5, 20 * j);
        add_bytes(terms, std::bit_cast<std::uint64_t>(v), 8);
      }
    }
    k.exact.resize(slice::pad4(k.exact.size()));
    k.exact.insert(k.exact.end(), terms.begin(), terms.end());
  }
  /// The second term lies between two elements, the first is small beside it.
  double half_way(int term) {
    const int bits = std::array{24, 11, 8}[random_.below(3)];
    const double v = term == 0 ? std::ldexp(1, -60) : 1 + std::ldexp(2 * below(random_, 100) + 1, -bits);
    return often() ? v : -v;
  }

  /// None with plain codes; sometimes with more index planes than it needs.
  Buffer draw_dictionary() {
    Buffer d;
    for (const Block& b : blocks_) d.push_back(b.code);
    std::sort(d.begin(), d.end());
    d.erase(std::unique(d.begin(), d.end()), d.end());
    index_planes_ = slice::index_planes_for(static_cast<int>(d.size()));
    if (chance(random_, 10)) index_planes_ = slice::Word::plain_codes;
    if (index_planes_ == slice::Word::plain_codes) return {};
    if (index_planes_ < 4 && chance(random_, 20)) ++index_planes_;
    return d;
  }
  void put_codes(const Buffer& dictionary) {
    if (dictionary.empty()) {
      for (const Block& b : blocks_) put(b.code);
      return;
    }
    for (std::uint32_t j = 0; j < index_planes_; ++j) {
      std::uint32_t plane = 0;
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const auto at = std::find(dictionary.begin(), dictionary.end(), blocks_[b].code) - dictionary.begin();
        plane |= (static_cast<std::uint32_t>(at) >> j & 1) << b;
      }
      put(plane);
    }
    out_.insert(out_.end(), dictionary.begin(), dictionary.end());
    pad(0);
  }
  void put_entries() {
    for (const Block& b : blocks_)
      if (b.code == slice::code_extended)
        put(slice::Entry{b.w, b.d, b.extra,
                         static_cast<std::uint32_t>(b.exact.size() / 4) + (chance(random_, 1) ? 5 : 0)}
                .pack());
  }

  /// Dense planes, masks and bytes.
  void put_planes() {
    density_ = below(random_, 5);
    const bool starts_at_base = !chance(random_, 3);  // as chains must
    const auto plane = [&](std::size_t b) { return draw_plane() & ~std::uint64_t{b == 0 && starts_at_base}; };
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      for (int r = 0; r < blocks_[b].d; ++r) put(plane(b));
    Buffer bytes;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      for (int r = blocks_[b].d; r < blocks_[b].w; ++r) put_sparse(plane(b), bytes);
      if ((fill_blocks_ >> b & 1) != 0) put_sparse(slice::mark_plane(draw_marks(static_cast<int>(b))), bytes);
      if (slice::Entry{.extra = blocks_[b].extra}.marked()) put_sparse(slice::mark_plane(blocks_[b].marks), bytes);
    }
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    pad(often() ? 0 : 7);
  }
  std::uint64_t draw_plane() {
    switch (density_) {
      case 0:
        return 0;
      case 1:
        return random_.bits() & random_.bits() & random_.bits() & random_.bits();
      case 2:
        return random_.bits();
      case 3:
        return ~std::uint64_t{0};
      default:
        return std::uint64_t{1} << random_.below(64);
    }
  }
  std::uint64_t draw_marks(int block) {
    const std::array choices = {random_.bits(), ~std::uint64_t{0}, std::uint64_t{0},
                                std::uint64_t{1} << random_.below(64)};
    const std::uint64_t marks = choices[random_.below(choices.size())];
    const int elements = std::clamp(count_ - slice::block_values * block, 0, slice::block_values);
    if (elements == slice::block_values || chance(random_, 3)) return marks;  // now and then behind the last element
    return marks & ((std::uint64_t{1} << elements) - 1);
  }
  /// A mask to the chunk and the plane's bytes to `bytes`, a few zeros among them.
  void put_sparse(std::uint64_t plane, Buffer& bytes) {
    std::uint8_t mask = 0;
    for (int g = 0; g < 8; ++g) {
      const auto byte = static_cast<std::uint8_t>(plane >> 8 * g);
      if (byte == 0 && !chance(random_, 3)) continue;
      mask = static_cast<std::uint8_t>(mask | 1U << g);
      bytes.push_back(byte);
    }
    put(mask);
  }

  void spoil() {
    if (chance(random_, 4)) {
      std::uint8_t& byte = out_[random_.below(out_.size())];
      byte = static_cast<std::uint8_t>(byte ^ 1U << random_.below(8));
    }
    if (chance(random_, 2)) put(std::uint32_t{0});
    if (chance(random_, 2)) out_.resize(out_.size() - 4);
  }

  Random& random_;
  const slice::Params& p_;
  int count_;
  Buffer out_;
  std::array<Block, slice::chunk_blocks> blocks_;
  std::uint32_t index_planes_ = 0;
  std::uint32_t fill_blocks_ = 0;
  int density_ = 0;
};

}  // namespace laconic::test
