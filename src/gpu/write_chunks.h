// Thread blocks that write chunks one behind the other into a frame, or each into a slot of its own; a chunk a warp,
// tile after tile. Where one belongs in a frame is known when all before it have been made, so its bytes wait in memory
// of the warp's own until the next one is made: then nobody waits but behind a chunk that takes much longer than
// others. Warps begin a tile together because a multiprocessor keeps few instructions near: by themselves, they waited
// for those half of the time (sums, H200). Source: look-back as in tile.h; the rest ours.
#pragma once

#include "codec/codec.h"
#include "codec/slice/slice.h"
#include "frame/layout.h"
#include "gpu/faults.h"
#include "gpu/made.h"
#include "gpu/sections.h"
#include "gpu/tile.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Memory where a warp keeps a chunk that has been made; longer ones wait for their place.
inline constexpr std::uint32_t kept_bytes = 4096;

/// Where chunks go.
struct Sink {
  std::uint8_t* out = nullptr;      ///< frame, 16-byte aligned; or slots
  std::uint64_t capacity = 0;       ///< bytes at `out`
  std::uint64_t count = 0;          ///< elements
  std::uint64_t* states = nullptr;  ///< of tiles, zero at first; frames only
  std::uint8_t* kept = nullptr;     ///< kept_bytes for each warp, 16-byte aligned; frames only
  std::uint16_t* sizes = nullptr;   ///< of slots, in units of 4 bytes; null for a frame
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

/// Copies a chunk; `to` and `from` 4-byte aligned.
LACONIC_GPU_FN void copy_chunk(const Warp& w, const std::uint8_t* from, std::uint32_t bytes, std::uint8_t* to) {
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (std::uint32_t i = 4 * static_cast<std::uint32_t>(l); i < bytes; i += 16 * warp_lanes) {
      std::uint32_t word[4];
      LACONIC_GPU_UNROLL
      for (std::uint32_t k = 0; k < 4; ++k) {
        if (i + 4 * warp_lanes * k < bytes) word[k] = load32(from + i + 4 * warp_lanes * k);
      }
      LACONIC_GPU_UNROLL
      for (std::uint32_t k = 0; k < 4; ++k) {
        if (i + 4 * warp_lanes * k < bytes) store32(to + i + 4 * warp_lanes * k, word[k]);
      }
    }
  });
}

/// A thread block at work. `op.make(warp, chunk, count, region, fault)` gives what has become of a chunk, 0 bytes where
/// there was a fault; `op.place(warp, chunk, count, region, made, out)` puts a chunk that is not there as bytes to out,
/// with the region as its memory; `op.expect(warp, first, end)` hears which chunks come soon.
template <class Op>
class TileWriter {
 public:
  /// regions, kept: of all warps, in shared memory (region_bytes each) and in the device's (kept_bytes each; frames
  /// only).
  LACONIC_GPU_FN TileWriter(const Tile& tile, const Op& op, const Sink& sink, TurnsShared& shared,
                            std::uint8_t* regions, std::uint32_t region_bytes, std::uint8_t* kept)
      : op_(op),
        sink_(sink),
        shared_(shared),
        regions_(regions),
        region_bytes_(region_bytes),
        kept_(kept),
        chunks_(slice::chunks_of(sink.count)) {
    tile.each_warp([&](const Warp& w, int k) {
      if (k == 0) note(w, 0, draw_tile(w, &sink.report->begun));
    });
    number_ = shared.number[0];
    if (chunks_ != 0 || number_ != 0) return;
    tile.each_warp([&](const Warp& w, int k) {
      if (k == 0) end_frame(w, payload_at());
    });
  }

  /// Makes the chunks of a tile, and places those of the one before. False: there is nothing left to do.
  LACONIC_GPU_FN bool step(const Tile& tile) {
    const bool more = chunk_of(number_, 0) < chunks_;
    tile.each_warp([&](const Warp& w, int k) {
      PerLane<std::uint32_t> next;
      if (more && k == 0) next = draw_tile(w, &sink_.report->begun);
      made_[k] = {};
      if (chunk_of(number_, k) < chunks_) made_[k] = make(w, k);
      if (more && k == 0) expect(w, note(w, turn_ ^ 1, next));
      if (waiting_[k].bytes != 0) place(w, k, waiting_number_, waiting_[k], turn_ ^ 1, kept_of(k));
      finish(w, k);
      w.each([&](int l) {
        if (l == 0) shared_.bytes[turn_][k] = made_[k].bytes;
      });
    });
    if (!more) return false;
    if (sink_.states != nullptr) {
      tile.each_warp_freely([&](const Warp& w, int k) {
        if (k == 0) announce(w, number_, bytes_of_tile(w, turn_), sink_.states);
        if (made_[k].bytes != 0 && waiting_[k].bytes == 0) place(w, k, number_, made_[k], turn_, region_of(k));
      });
    }
    turn_ ^= 1;
    waiting_number_ = number_;
    number_ = shared_.number[turn_];
    return true;
  }

 private:
  [[nodiscard]] LACONIC_GPU_FN std::uint64_t payload_at() const {
    return frame::header_bytes + slice::table_bytes(sink_.count);
  }
  [[nodiscard]] LACONIC_GPU_FN std::uint8_t* region_of(int k) const { return regions_ + k * region_bytes_; }
  [[nodiscard]] LACONIC_GPU_FN std::uint8_t* kept_of(int k) const { return kept_ + k * kept_bytes; }
  [[nodiscard]] LACONIC_GPU_FN static std::uint64_t chunk_of(std::uint64_t number, int k) {
    return number * tile_warps + static_cast<std::uint64_t>(k);
  }
  LACONIC_GPU_FN std::uint32_t bytes_of_tile(const Warp& w, int turn) const {
    return w.sum<std::uint32_t>([&](int l) { return l < tile_warps ? shared_.bytes[turn][l] : 0U; });
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

  /// Tells the other warps which tile has been drawn.
  LACONIC_GPU_FN std::uint64_t note(const Warp& w, int turn, const PerLane<std::uint32_t>& number) {
    w.each([&](int l) {
      if (l == 0) shared_.number[turn] = number[l];
    });
    return w.from(number, 0);
  }

  LACONIC_GPU_FN void expect(const Warp& w, std::uint64_t number) const {
    const std::uint64_t first = chunk_of(number, 0);
    if (first < chunks_) op_.expect(w, first, chunks_ - first < tile_warps ? chunks_ : first + tile_warps);
  }

  /// A chunk that has just been made goes to its slot, or where it waits for its place; some cannot wait.
  LACONIC_GPU_FN void finish(const Warp& w, int k) {
    const Made made = made_[k];
    waiting_[k] = {};
    if (made.bytes == 0) return;
    if (sink_.sizes != nullptr) return place_in_slot(w, k, made);
    if (made.as == Made::As::again || (made.as == Made::As::bytes && made.bytes > kept_bytes)) return;
    if (made.as == Made::As::bytes) keep(w, k, made.bytes);
    waiting_[k] = made;
  }

  LACONIC_GPU_FN void keep(const Warp& w, int k, std::uint32_t bytes) {
    auto* to = reinterpret_cast<Unit<std::uint32_t>*>(kept_of(k));
    const auto* from = reinterpret_cast<const Unit<std::uint32_t>*>(region_of(k));
    w.each([&](int l) {
      LACONIC_GPU_KEEP_LOOP
      for (std::uint32_t i = static_cast<std::uint32_t>(l); 16 * i < bytes; i += warp_lanes) to[i] = from[i];
    });
  }

  /// `from`: where a chunk lies that is there as bytes.
  LACONIC_GPU_FN void put(const Warp& w, int k, std::uint64_t chunk, const Made& made, const std::uint8_t* from,
                          std::uint8_t* out) {
    if (made.as == Made::As::bytes) return copy_chunk(w, from, made.bytes, out);
    op_.place(w, chunk, elements_in(sink_.count, chunk), region_of(k), made, out);
  }

  LACONIC_GPU_FN void place_in_slot(const Warp& w, int k, const Made& made) {
    const std::uint64_t chunk = chunk_of(number_, k);
    const bool fits = made.bytes <= sink_.slot_bytes;
    w.each([&](int l) {
      if (l != 0) return;
      if (!fits) or_shared(&sink_.report->faults, static_cast<std::uint32_t>(Fault::too_small));
      sink_.sizes[chunk] = static_cast<std::uint16_t>(fits ? made.bytes / 4 : 0);
    });
    if (fits) put(w, k, chunk, made, region_of(k), sink_.out + chunk * sink_.slot_bytes);
  }

  /// Puts a chunk of a tile that has been announced, whose sizes are those of `turn`, into the frame.
  LACONIC_GPU_FN void place(const Warp& w, int k, std::uint64_t number, const Made& made, int turn,
                            const std::uint8_t* from) {
    const std::uint64_t chunk = chunk_of(number, k);
    std::uint64_t at = payload_at() + bytes_before(w, number, bytes_of_tile(w, turn), sink_.states);
    at += w.sum<std::uint32_t>([&](int l) { return l < k ? shared_.bytes[turn][l] : 0U; });
    const std::uint64_t end = at + made.bytes;
    if (chunk + 1 == chunks_) end_frame(w, end);
    if (end > sink_.capacity) return;
    w.each([&](int l) {
      if (l == 0) store16(sink_.out + frame::header_bytes + 2 * chunk, static_cast<std::uint16_t>(made.bytes / 4));
    });
    put(w, k, chunk, made, from, sink_.out + at);
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
  TurnsShared& shared_;
  std::uint8_t* regions_;
  std::uint32_t region_bytes_;
  std::uint8_t* kept_;
  std::uint64_t chunks_;
  std::uint64_t number_ = 0;          ///< of the tile that is made
  std::uint64_t waiting_number_ = 0;  ///< of the one before
  int turn_ = 0;                      ///< which of the two places are its
  PerWarp<Made> made_;
  PerWarp<Made> waiting_;  ///< what waits for its place; no bytes: nothing does
};

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
