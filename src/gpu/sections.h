// What a coded chunk begins with: word, base, fill, codes (docs/format.md, sections 3 and 4), written and read by a
// warp. Source: ours; the definitions are codec/slice/chunk_writer.cc and chunk_reader.cc.
#pragma once

#include <cstring>

#include "codec/slice/chunk.h"
#include "gpu/rows.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

using slice::ChunkShape;
using slice::Kind;
using slice::Predictor;
using slice::Word;

/// Words at addresses that are multiples of 4.
LACONIC_GPU_FN std::uint32_t load32(const std::uint8_t* p) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const std::uint32_t*>(p);
#else
  return slice::load<std::uint32_t>(p);
#endif
}
LACONIC_GPU_FN void store32(std::uint8_t* p, std::uint32_t v) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<std::uint32_t*>(p) = v;
#else
  slice::store(p, v);
#endif
}
LACONIC_GPU_FN std::uint64_t load64(const std::uint8_t* p) { return std::uint64_t{load32(p + 4)} << 32 | load32(p); }
LACONIC_GPU_FN void store64(std::uint8_t* p, std::uint64_t v) {
  store32(p, static_cast<std::uint32_t>(v));
  store32(p + 4, static_cast<std::uint32_t>(v >> 32));
}

LACONIC_GPU_FN std::uint32_t pad4(std::uint32_t n) { return (n + 3) & ~3U; }

/// The chunk's beginning, all lanes alike.
struct Start {
  Word word;
  std::int64_t base = 0;
  std::uint32_t fill_blocks = 0;
  std::uint64_t fill = 0;
};

LACONIC_GPU_FN std::uint32_t fill_value_bytes(const ChunkShape& s) { return s.sum || s.element_bytes == 8 ? 8 : 4; }

// ---------------------------------------------------------------------------------------------------------- writing

/// Puts base into the word, or says that it follows.
LACONIC_GPU_FN void place_base(Start& s) {
  s.word.long_base = !Word::fits(s.base);
  s.word.base = s.word.long_base ? 0 : static_cast<std::int32_t>(s.base);
}

/// Bytes of word, base and fill.
template <class I>
LACONIC_GPU_FN std::uint32_t start_bytes(const Start& s, const ChunkShape& shape) {
  return 4 + (s.word.long_base ? static_cast<std::uint32_t>(sizeof(I)) : 0) +
         (s.word.has_fill ? 4 + fill_value_bytes(shape) : 0);
}

LACONIC_GPU_FN void write_fill_value(std::uint8_t* out, std::uint64_t fill, const ChunkShape& shape) {
  if (fill_value_bytes(shape) == 8) {
    store64(out, fill);
  } else {
    store32(out, static_cast<std::uint32_t>(fill));
  }
}

/// By one lane.
template <class I>
LACONIC_GPU_FN void write_start(std::uint8_t* out, const Start& s, const ChunkShape& shape) {
  store32(out, s.word.pack());
  out += 4;
  if (s.word.long_base) {
    if constexpr (sizeof(I) == 8) {
      store64(out, static_cast<std::uint64_t>(s.base));
    } else {
      store32(out, static_cast<std::uint32_t>(s.base));
    }
    out += sizeof(I);
  }
  if (!s.word.has_fill) return;
  store32(out, s.fill_blocks);
  write_fill_value(out + 4, s.fill, shape);
}

/// The distinct codes of the blocks in ascending order, and each block's place among them.
struct Dictionary {
  std::uint32_t size = 0;
  std::uint32_t index_planes = 0;
  PerLane<std::uint32_t> index;

  [[nodiscard]] LACONIC_GPU_FN std::uint32_t bytes() const {
    return index_planes == Word::plain_codes ? chunk_blocks : 4 * index_planes + pad4(size);
  }
};

LACONIC_GPU_FN Dictionary make_dictionary(const Warp& w, const PerLane<std::uint32_t>& codes) {
  Dictionary d;
  // A code is 32 s + w: a word of flags for each s that there is.
  std::uint32_t left = w.bits_of_any([&](int l) { return 1U << (codes[l] >> 5); });
  LACONIC_GPU_KEEP_LOOP
  for (; left != 0; left &= left - 1) {
    const auto s = static_cast<std::uint32_t>(trailing_zeros(left));
    const std::uint32_t there = w.bits_of_any([&](int l) { return codes[l] >> 5 == s ? 1U << (codes[l] & 31) : 0; });
    w.each([&](int l) {
      const std::uint32_t own = codes[l] >> 5;
      if (own == s) d.index[l] = d.size + static_cast<std::uint32_t>(count_ones(there & ((1U << (codes[l] & 31)) - 1)));
    });
    d.size += static_cast<std::uint32_t>(count_ones(there));
  }
  d.index_planes = slice::index_planes_for(static_cast<int>(d.size));
  return d;
}

LACONIC_GPU_FN void set_codes(Word& word, const Dictionary& d) {
  word.index_planes = d.index_planes;
  word.dictionary = d.index_planes == Word::plain_codes ? 1 : d.size;
}

LACONIC_GPU_FN void write_codes(const Warp& w, const Dictionary& d, const PerLane<std::uint32_t>& codes,
                                std::uint8_t* out) {
  if (d.index_planes == Word::plain_codes) {
    w.each([&](int l) { out[l] = static_cast<std::uint8_t>(codes[l]); });
    return;
  }
  LACONIC_GPU_KEEP_LOOP
  for (std::uint32_t j = 0; j < d.index_planes; ++j) {
    const std::uint32_t plane = w.ballot([&](int l) { return (d.index[l] >> j & 1) != 0; });
    w.each([&](int l) {
      if (l == 0) store32(out + 4 * j, plane);
    });
  }
  std::uint8_t* entries = out + 4 * d.index_planes;
  w.each([&](int l) {
    if (static_cast<std::uint32_t>(l) < pad4(d.size)) entries[l] = 0;
  });
  w.each([&](int l) { entries[d.index[l]] = static_cast<std::uint8_t>(codes[l]); });
}

// ---------------------------------------------------------------------------------------------------------- reading

/// Takes pieces off the front of a chunk; all lanes alike. Places are counted from the chunk's beginning: a pointer
/// that may be null is none to shared memory for the compiler, and is loaded from in a slower way.
class Pieces {
 public:
  LACONIC_GPU_FN Pieces(const std::uint8_t* chunk, std::uint32_t bytes) : chunk_(chunk), left_(bytes) {}
  /// Whether n bytes more are there; then `place` is where they are, and they are taken.
  LACONIC_GPU_FN bool take(std::uint32_t n, std::uint32_t& place) {
    if (n > left_) return false;
    place = place_;
    place_ += n;
    left_ -= n;
    return true;
  }
  [[nodiscard]] LACONIC_GPU_FN std::uint32_t left() const { return left_; }
  [[nodiscard]] LACONIC_GPU_FN const std::uint8_t* at(std::uint32_t place) const { return chunk_ + place; }

 private:
  const std::uint8_t* chunk_;
  std::uint32_t place_ = 0;
  std::uint32_t left_;
};

LACONIC_GPU_FN bool read_fill_value(Pieces& in, const ChunkShape& shape, std::uint64_t& fill) {
  std::uint32_t place = 0;
  if (!in.take(fill_value_bytes(shape), place)) return false;
  fill = fill_value_bytes(shape) == 8 ? load64(in.at(place)) : load32(in.at(place));
  return shape.element_bytes != 2 || shape.sum || fill <= 0xFFFF;
}

/// Word, base and, in a coded or fill chunk, fill. False: no chunk of version 1.
template <class I>
LACONIC_GPU_FN bool read_start(Pieces& in, const ChunkShape& shape, Start& s) {
  std::uint32_t place = 0;
  if (!in.take(4, place)) return false;
  s.word = Word::unpack(load32(in.at(place)));
  s.base = s.word.base;
  if (s.word.kind == Kind::raw) return true;
  if (s.word.kind == Kind::fill) return !shape.exact_only && read_fill_value(in, shape, s.fill);
  if (s.word.kind == Kind::coded && !s.word.valid_codes()) return false;
  if (s.word.long_base) {
    if (!in.take(sizeof(I), place)) return false;
    s.base = sizeof(I) == 8 ? static_cast<std::int64_t>(load64(in.at(place)))
                            : static_cast<std::int32_t>(load32(in.at(place)));
  }
  if (s.word.kind == Kind::constant || !s.word.has_fill) return true;
  if (shape.exact_only || !in.take(4, place)) return false;
  s.fill_blocks = load32(in.at(place));
  return read_fill_value(in, shape, s.fill);
}

/// Each block's code. False: the section is not there, or an index is beyond the dictionary.
LACONIC_GPU_FN bool read_codes(const Warp& w, Pieces& in, const Word& word, PerLane<std::uint32_t>& codes) {
  if (word.index_planes == Word::plain_codes) {
    std::uint32_t place = 0;
    if (!in.take(chunk_blocks, place)) return false;
    w.each([&](int l) { codes[l] = in.at(place)[l]; });
    return true;
  }
  std::uint32_t planes = 0;
  std::uint32_t dictionary = 0;
  if (!in.take(4 * word.index_planes, planes) || !in.take(pad4(word.dictionary), dictionary)) return false;
  PerLane<std::uint32_t> index;
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (std::uint32_t j = 0; j < word.index_planes; ++j) index[l] |= (load32(in.at(planes + 4 * j)) >> l & 1) << j;
  });
  if (w.any([&](int l) { return index[l] >= word.dictionary; })) return false;
  w.each([&](int l) { codes[l] = in.at(dictionary)[index[l]]; });
  return true;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
