// Thread blocks that write chunks one behind the other into a frame, or each into a slot of its own; a chunk a warp.
// Where a chunk belongs in a frame is known when all before it have been made. A tile does not wait for that: it keeps
// its chunks in memory of the device, mostly its cache, says how long they are, and places those of a tile of long ago.
// So nobody waits, and the warps of a block run the same instructions at about the same time, of which a multiprocessor
// keeps few near. Source: look-back as in tile.h; the rest ours.
#pragma once

#include "codec/codec.h"
#include "codec/slice/slice.h"
#include "frame/layout.h"
#include "gpu/faults.h"
#include "gpu/made.h"
#include "gpu/sections.h"
#include "gpu/tile.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// The longest chunk that is kept; longer ones wait for their place.
inline constexpr std::uint32_t kept_bytes = 4096;

/// A tile's chunks until they are placed.
struct alignas(16) KeptTile {
  Made made[tile_warps];
  std::uint8_t bytes[tile_warps][kept_bytes];
};

/// Where chunks go.
struct Sink {
  std::uint8_t* out = nullptr;      ///< frame, 16-byte aligned; or slots
  std::uint64_t capacity = 0;       ///< bytes at `out`
  std::uint64_t count = 0;          ///< elements
  std::uint64_t* states = nullptr;  ///< of tiles, zero at first; frames only
  KeptTile* kept = nullptr;         ///< places for so many tiles, used in turn; frames only
  std::uint32_t* placed = nullptr;  ///< of each of these, chunks placed from it so far; zero at first
  std::uint32_t places = 0;
  std::uint32_t delay = 0;           ///< tile t places what tile t - delay has kept; at most `places`
  std::uint64_t* offsets = nullptr;  ///< where each chunk begins and the last one ends, if anyone asks; frames only
  std::uint16_t* sizes = nullptr;    ///< of slots, in units of 4 bytes; null for a frame
  std::uint32_t slot_bytes = 0;
  Params params;  ///< of the frame
  Report* report = nullptr;
};

/// Version, dtype, codec and qbits, as they stand in the header.
LACONIC_GPU_FN std::uint32_t kind_word(const Grid& g) {
  constexpr auto slice_id = static_cast<std::uint32_t>(CodecId::slice);
  return static_cast<std::uint32_t>(frame::version) | static_cast<std::uint32_t>(g.dtype) << 8 | slice_id << 16 |
         static_cast<std::uint32_t>(g.qbits) << 24;
}

/// The header of a frame, but for its checksum, which is 0.
LACONIC_GPU_FN void write_header(const Sink& sink, std::uint64_t bytes) {
  std::uint8_t* h = sink.out;
  const Grid& g = sink.params.grid;
  store32(h + frame::at_magic, frame::magic);
  store32(h + frame::at_version, kind_word(g));
  store32(h + frame::at_operands, sink.params.operands);
  store32(h + frame::at_crc, 0);
  store64(h + frame::at_count, sink.count);
  store64(h + frame::at_bytes, bytes);
  store64(h + frame::at_step, std::bit_cast<std::uint64_t>(g.step));
  store64(h + frame::at_bound, std::bit_cast<std::uint64_t>(g.bound));
}

LACONIC_GPU_FN void store16(std::uint8_t* p, std::uint16_t v) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<std::uint16_t*>(p) = v;
#else
  slice::store(p, v);
#endif
}

LACONIC_GPU_FN int elements_in(std::uint64_t count, std::uint64_t chunk) {
  const std::uint64_t left = count - chunk * chunk_values;
  return left < chunk_values ? static_cast<int>(left) : chunk_values;
}

/// Tiles that make chunks; so many as the delay follow, for the last of them to be placed.
LACONIC_GPU_FN std::uint64_t tiles_in(const Sink& sink) {
  return (slice::chunks_of(sink.count) + tile_warps - 1) / tile_warps;
}

/// A word that another thread block has written.
LACONIC_GPU_FN std::uint32_t load_word_from_afar(const std::uint8_t* p) {
#if defined(__CUDA_ARCH__)
  return __ldcg(reinterpret_cast<const std::uint32_t*>(p));
#else
  return load32(p);
#endif
}
template <class Word>
LACONIC_GPU_FN std::uint32_t load_from_afar(const Word* p) {
  static_assert(sizeof(Word) == 4);
  return load_word_from_afar(reinterpret_cast<const std::uint8_t*>(p));
}

/// Copies a chunk that `load` reads from 4-byte aligned memory.
template <class Load>
LACONIC_GPU_FN void copy_chunk(const Warp& w, const std::uint8_t* from, std::uint32_t bytes, std::uint8_t* to,
                               Load load) {
  constexpr std::uint32_t ahead = 4;  // loads under way at once
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (std::uint32_t i = 4 * static_cast<std::uint32_t>(l); i < bytes; i += 4 * ahead * warp_lanes) {
      std::uint32_t word[ahead];
      LACONIC_GPU_UNROLL
      for (std::uint32_t a = 0; a < ahead; ++a) {
        const std::uint32_t at = i + 4 * warp_lanes * a;
        if (at < bytes) word[a] = load(from + at);
      }
      LACONIC_GPU_UNROLL
      for (std::uint32_t a = 0; a < ahead; ++a) {
        const std::uint32_t at = i + 4 * warp_lanes * a;
        if (at < bytes) store32(to + at, word[a]);
      }
    }
  });
}

/// Copies a chunk in units of 16 bytes, to which both are aligned: up to 12 bytes more than it has.
LACONIC_GPU_FN void copy_units(const Warp& w, const std::uint8_t* from, std::uint32_t bytes, std::uint8_t* to) {
  using Piece = Unit<std::uint32_t>;
  static_assert(sizeof(Piece) == 16);
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (std::uint32_t i = static_cast<std::uint32_t>(l); 16 * i < bytes; i += warp_lanes)
      reinterpret_cast<Piece*>(to)[i] = reinterpret_cast<const Piece*>(from)[i];
  });
}

/// A tile at work. `op.make(warp, chunk, count, region, fault)` gives what has become of a chunk, 0 bytes where there
/// was a fault; `op.place(warp, chunk, count, region, made, out)` puts a chunk that is not there as bytes to out, with
/// the region as its memory; `op.expect(warp, first, end)` hears which chunks come soon.
template <class Op>
class TileWriter {
 public:
  /// regions: of all warps, in shared memory, region_bytes each.
  LACONIC_GPU_FN TileWriter(const Op& op, const Sink& sink, std::uint64_t number, TileShared& shared,
                            std::uint8_t* regions, std::uint32_t region_bytes)
      : op_(op),
        sink_(sink),
        number_(number),
        shared_(shared),
        regions_(regions),
        region_bytes_(region_bytes),
        chunks_(slice::chunks_of(sink.count)) {}

  LACONIC_GPU_FN void run(const Tile& tile) {
    if (chunks_ == 0) {
      tile.each_warp_freely([&](const Warp& w, int k) {
        if (number_ == 0 && k == 0 && sink_.sizes == nullptr) end_frame(w, payload_at());
      });
      return;
    }
    tile.each_warp([&](const Warp& w, int k) {
      w.each([&](int l) {
        if (k == 0 && l == 0) shared_.arrived = shared_.placed = shared_.found = 0;
      });
    });
    tile.each_warp_freely([&](const Warp& w, int k) {
      made_[k] = {};
      if (chunk_of(number_, k) < chunks_) made_[k] = make(w, k);
      if (sink_.sizes != nullptr) return place_in_slot(w, k);
      finish(w, k);
    });
    if (sink_.sizes != nullptr) return;
    tile.each_warp_freely([&](const Warp& w, int k) {
      if (is_direct(made_[k])) place_made(w, k);
    });
  }

 private:
  /// Tiles that are under way at once on an H100 or H200; what is fetched ahead for others is too soon or too late.
  static constexpr std::uint64_t under_way = 396;

  [[nodiscard]] LACONIC_GPU_FN std::uint64_t payload_at() const {
    return frame::header_bytes + slice::table_bytes(sink_.count);
  }
  [[nodiscard]] LACONIC_GPU_FN std::uint8_t* region_of(int k) const { return regions_ + k * region_bytes_; }
  [[nodiscard]] LACONIC_GPU_FN static std::uint64_t chunk_of(std::uint64_t number, int k) {
    return number * tile_warps + static_cast<std::uint64_t>(k);
  }
  [[nodiscard]] LACONIC_GPU_FN KeptTile& kept_of(std::uint64_t number) const {
    return sink_.kept[number % sink_.places];
  }
  LACONIC_GPU_FN std::uint32_t bytes_of_tile(const Warp& w) const {
    return w.sum<std::uint32_t>([&](int l) { return l < tile_warps ? shared_.bytes[l] : 0U; });
  }

  LACONIC_GPU_FN Made make(const Warp& w, int k) {
    const std::uint64_t chunk = chunk_of(number_, k);
    std::uint32_t fault = 0;
    const Made made = op_.make(w, chunk, elements_in(sink_.count, chunk), region_of(k), fault);
    w.each([&](int l) {
      if (l == 0 && fault != 0) or_shared(&sink_.report->faults, fault);
    });
    return made;
  }

  LACONIC_GPU_FN void place_in_slot(const Warp& w, int k) {
    const Made made = made_[k];
    const std::uint64_t chunk = chunk_of(number_, k);
    if (chunk >= chunks_) return;
    const bool fits = made.bytes <= sink_.slot_bytes;
    w.each([&](int l) {
      if (l != 0) return;
      if (!fits) or_shared(&sink_.report->faults, static_cast<std::uint32_t>(Fault::too_small));
      sink_.sizes[chunk] = static_cast<std::uint16_t>(fits ? made.bytes / 4 : 0);
    });
    if (made.bytes == 0 || !fits) return;
    std::uint8_t* const slot = sink_.out + chunk * sink_.slot_bytes;
    if (made.as != Made::As::bytes) return place(w, k, chunk, made, slot);
    copy_units(w, region_of(k), made.bytes, slot);
  }

  /// Whether a chunk is put where it belongs by the tile that made it.
  [[nodiscard]] LACONIC_GPU_FN static bool is_direct(const Made& made) {
    return made.bytes != 0 && (made.as == Made::As::again || (made.as == Made::As::bytes && made.bytes > kept_bytes));
  }

  /// Puts a chunk that has just been made where it waits.
  LACONIC_GPU_FN void keep(const Warp& w, int k) {
    const Made made = made_[k];
    KeptTile& to = kept_of(number_);
    w.each([&](int l) {
      if (l != 0) return;
      if (number_ >= sink_.places)  // what is there has to be placed
        wait_for(&sink_.placed[number_ % sink_.places], static_cast<std::uint32_t>(number_ / sink_.places));
      to.made[k] = made;
    });
    if (made.as != Made::As::bytes || is_direct(made)) return;
    copy_units(w, region_of(k), made.bytes, to.bytes[k]);
  }

  /// Says how long the warp's chunk is, behind everything that it has written; returns how many were earlier.
  LACONIC_GPU_FN std::uint32_t arrive_in_tile(const Warp& w, int k) {
    PerLane<std::uint32_t> order;
    w.each([&](int l) {
      if (l != 0) return;
      shared_.bytes[k] = made_[k].bytes;
      order[l] = count_behind_in_block(&shared_.arrived);
    });
    return w.from(order, 0);
  }

  LACONIC_GPU_FN void expect(const Warp& w) const {
    const std::uint64_t first = chunk_of(number_ + under_way, 0);
    if (first < chunks_) op_.expect(w, first, chunks_ - first < tile_warps ? chunks_ : first + tile_warps);
  }

  /// Keeps the warp's chunk, and places one of the tile whose turn it is.
  LACONIC_GPU_FN void finish(const Warp& w, int k) {
    const bool makes = number_ < tiles_in(sink_);
    if (makes) keep(w, k);
    const std::uint32_t order = arrive_in_tile(w, k);
    if (makes && order + 1 == tile_warps) {
      w.each([](int) { fence(); });
      announce(w, number_, bytes_of_tile(w), sink_.states);
    }
    if (order == 0) expect(w);
    if (number_ < sink_.delay) return;
    const std::uint64_t old = number_ - sink_.delay;
    if (order == 0) find(w, old);
    w.each([&](int l) {
      if (l == 0) wait_until_raised(&shared_.found);
    });
    place_kept(w, k, old);
  }

  /// Tells the other warps where a tile ends.
  LACONIC_GPU_FN void find(const Warp& w, std::uint64_t number) {
    const std::uint64_t end = payload_at() + bytes_up_to(w, number, sink_.states);
    w.each([&](int l) {
      if (l != 0) return;
      shared_.end = end;
      raise(&shared_.found);
    });
  }

  LACONIC_GPU_FN void place_kept(const Warp& w, int k, std::uint64_t number) {
    const KeptTile& kept = kept_of(number);
    PerLane<std::uint32_t> bytes;
    w.each([&](int l) {
      if (l < tile_warps) bytes[l] = load_from_afar(&kept.made[l].bytes);
    });
    const Made made{static_cast<Made::As>(load_from_afar(&kept.made[k].as)), w.from(bytes, k)};
    const std::uint64_t chunk = chunk_of(number, k);
    if (chunk + 1 == chunks_) end_frame(w, shared_.end);
    const std::uint64_t at = shared_.end - w.sum<std::uint32_t>([&](int l) { return l >= k ? bytes[l] : 0U; });
    if (sink_.offsets != nullptr && chunk < chunks_) {
      w.each([&](int l) {
        if (l == 0) sink_.offsets[chunk] = at;
        if (l == 0 && chunk + 1 == chunks_) sink_.offsets[chunks_] = shared_.end;
      });
    }
    if (made.bytes != 0 && !is_direct(made)) put_in_frame(w, k, chunk, made, kept.bytes[k], at);
    w.each([&](int l) {
      if (l != 0 || count_behind_in_block(&shared_.placed) + 1 < tile_warps) return;
      count_behind(&sink_.placed[number % sink_.places]);
    });
  }

  /// The warp's own chunk, which lies in the region or nowhere yet.
  LACONIC_GPU_FN void place_made(const Warp& w, int k) {
    const std::uint64_t end = payload_at() + bytes_up_to(w, number_, sink_.states);
    const std::uint32_t behind =
        w.sum<std::uint32_t>([&](int l) { return l >= k && l < tile_warps ? shared_.bytes[l] : 0U; });
    put_in_frame(w, k, chunk_of(number_, k), made_[k], region_of(k), end - behind);
  }

  /// `from`: where a chunk lies that is there as bytes, in this block's region or kept by another.
  LACONIC_GPU_FN void put_in_frame(const Warp& w, int k, std::uint64_t chunk, const Made& made,
                                   const std::uint8_t* from, std::uint64_t at) {
    if (at + made.bytes > sink_.capacity) return;
    w.each([&](int l) {
      if (l == 0) store16(sink_.out + frame::header_bytes + 2 * chunk, static_cast<std::uint16_t>(made.bytes / 4));
    });
    if (made.as != Made::As::bytes) return place(w, k, chunk, made, sink_.out + at);
    if (from == region_of(k)) return copy_chunk(w, from, made.bytes, sink_.out + at, load32);
    copy_chunk(w, from, made.bytes, sink_.out + at, load_word_from_afar);
  }

  /// A chunk that is not there as bytes.
  LACONIC_GPU_FN void place(const Warp& w, int k, std::uint64_t chunk, const Made& made, std::uint8_t* out) {
    op_.place(w, chunk, elements_in(sink_.count, chunk), region_of(k), made, out);
  }

  /// The last chunk ends at `end`.
  LACONIC_GPU_FN void end_frame(const Warp& w, std::uint64_t end) const {
    w.each([&](int l) {
      if (l != 0) return;
      sink_.report->bytes = end;
      if (end > sink_.capacity) {
        or_shared(&sink_.report->faults, static_cast<std::uint32_t>(Fault::too_small));
        return;
      }
      write_header(sink_, end);
      if (chunks_ % 2 != 0) store16(sink_.out + frame::header_bytes + 2 * chunks_, 0);
    });
  }

  const Op& op_;
  const Sink& sink_;
  std::uint64_t number_;
  TileShared& shared_;
  std::uint8_t* regions_;
  std::uint32_t region_bytes_;
  std::uint64_t chunks_;
  PerWarp<Made> made_;
};

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
