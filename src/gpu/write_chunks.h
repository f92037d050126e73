// Warps that write chunks one behind the other into a frame, or each into a slot of its own. A warp makes chunk after
// chunk. Where one belongs in a frame is known when all before it have been made, so its bytes wait in memory of the
// warp's own until the next one is made: then nobody waits but behind a chunk that takes much longer than others.
// Source: look-back as in tile.h; the rest ours.
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
/// Warps that can be at work at once: more than a device has room for.
inline constexpr std::uint64_t most_writers = 4096;

/// Where chunks go.
struct Sink {
  std::uint8_t* out = nullptr;      ///< frame, 16-byte aligned; or slots
  std::uint64_t capacity = 0;       ///< bytes at `out`
  std::uint64_t count = 0;          ///< elements
  std::uint64_t* states = nullptr;  ///< of chunks, zero at first; frames only
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

/// The next chunk that nobody has begun; lane 0 gets it.
LACONIC_GPU_FN PerLane<std::uint32_t> ask_for_chunk(const Warp& w, Report* report) {
  PerLane<std::uint32_t> next;
  w.each([&](int l) {
    if (l == 0) next[l] = add_shared(&report->begun, 1U);
  });
  return next;
}
/// The same, for all lanes. Whoever has one is at work, so those behind it may wait for it.
LACONIC_GPU_FN std::uint64_t begin_chunk(const Warp& w, Report* report) { return w.from(ask_for_chunk(w, report), 0); }

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

/// One warp at work. `op.make(warp, chunk, count, region, fault)` gives what has become of a chunk, 0 bytes where there
/// was a fault; `op.place(warp, chunk, count, region, made, out)` puts a chunk that lies nowhere yet to out, with the
/// region as its memory; `op.expect(warp, chunk)` hears which chunk is next.
template <class Op>
class ChunkWriter {
 public:
  /// region: of the warp, in shared memory. kept: likewise, kept_bytes in the device's memory; frames only.
  LACONIC_GPU_FN ChunkWriter(const Warp& w, const Op& op, const Sink& sink, std::uint8_t* region, std::uint8_t* kept)
      : op_(op), sink_(sink), region_(region), kept_(kept), chunks_(slice::chunks_of(sink.count)) {
    next_ = begin_chunk(w, sink.report);
    if (chunks_ == 0 && next_ == 0) end_frame(w, payload_at());
  }

  /// Makes a chunk, and finishes the one before. False: there is nothing left to do.
  LACONIC_GPU_FN bool step(const Warp& w) {
    const std::uint64_t chunk = next_;
    Made made;
    made.bytes = 0;
    if (chunk < chunks_) {
      made = make(w, chunk);
      if (sink_.states != nullptr) announce(w, chunk, made.bytes, sink_.states);
      next_ = begin_chunk(w, sink_.report);
      if (next_ < chunks_) op_.expect(w, next_);
    }
    if (waiting_.bytes != 0) place(w, waiting_chunk_, waiting_, kept_);
    waiting_.bytes = 0;
    if (chunk >= chunks_) return false;
    if (made.bytes != 0) finish(w, chunk, made);
    return true;
  }

 private:
  [[nodiscard]] LACONIC_GPU_FN std::uint64_t payload_at() const {
    return frame::header_bytes + slice::table_bytes(sink_.count);
  }

  LACONIC_GPU_FN Made make(const Warp& w, std::uint64_t chunk) {
    std::uint32_t fault = 0;
    const Made made = op_.make(w, chunk, elements_in(sink_.count, chunk), region_, fault);
    w.each([&](int l) {
      if (l == 0 && fault != 0) or_shared(&sink_.report->faults, fault);
    });
    return made;
  }

  /// Puts a chunk that has just been made where it belongs, or keeps it until that is known.
  LACONIC_GPU_FN void finish(const Warp& w, std::uint64_t chunk, const Made& made) {
    if (sink_.sizes != nullptr) return place_in_slot(w, chunk, made);
    if (made.as == Made::As::again || (made.as == Made::As::bytes && made.bytes > kept_bytes))
      return place(w, chunk, made, region_);
    if (made.as == Made::As::bytes) keep(w, made.bytes);
    waiting_ = made;
    waiting_chunk_ = chunk;
  }

  LACONIC_GPU_FN void keep(const Warp& w, std::uint32_t bytes) {
    w.each([&](int l) {
      LACONIC_GPU_KEEP_LOOP
      for (std::uint32_t i = 16 * static_cast<std::uint32_t>(l); i < bytes; i += 16 * warp_lanes)
        *reinterpret_cast<Unit<std::uint32_t>*>(kept_ + i) = *reinterpret_cast<const Unit<std::uint32_t>*>(region_ + i);
    });
  }

  /// `from`: where a chunk lies that is there as bytes.
  LACONIC_GPU_FN void put(const Warp& w, std::uint64_t chunk, const Made& made, const std::uint8_t* from,
                          std::uint8_t* out) {
    if (made.as == Made::As::bytes) return copy_chunk(w, from, made.bytes, out);
    op_.place(w, chunk, elements_in(sink_.count, chunk), region_, made, out);
  }

  LACONIC_GPU_FN void place_in_slot(const Warp& w, std::uint64_t chunk, const Made& made) {
    const bool fits = made.bytes <= sink_.slot_bytes;
    w.each([&](int l) {
      if (l != 0) return;
      if (!fits) or_shared(&sink_.report->faults, static_cast<std::uint32_t>(Fault::too_small));
      sink_.sizes[chunk] = static_cast<std::uint16_t>(fits ? made.bytes / 4 : 0);
    });
    if (fits) put(w, chunk, made, region_, sink_.out + chunk * sink_.slot_bytes);
  }

  LACONIC_GPU_FN void place(const Warp& w, std::uint64_t chunk, const Made& made, const std::uint8_t* from) {
    const std::uint64_t at = payload_at() + bytes_before(w, chunk, made.bytes, sink_.states);
    const std::uint64_t end = at + made.bytes;
    if (chunk + 1 == chunks_) end_frame(w, end);
    if (end > sink_.capacity) return;
    w.each([&](int l) {
      if (l == 0) store16(sink_.out + frame::header_bytes + 2 * chunk, static_cast<std::uint16_t>(made.bytes / 4));
    });
    put(w, chunk, made, from, sink_.out + at);
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
  std::uint8_t* region_;
  std::uint8_t* kept_;
  std::uint64_t chunks_;
  std::uint64_t next_ = 0;
  std::uint64_t waiting_chunk_ = 0;
  Made waiting_{};  ///< no bytes: there is none
};

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
