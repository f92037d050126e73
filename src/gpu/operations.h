// The operations as warps run them: encoding and summing into frames or slots, decoding, and finding where the chunks
// of a frame begin. Source: ours.
#pragma once

#include "gpu/sum_chunk.h"
#include "gpu/write_chunks.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

LACONIC_GPU_FN std::uint32_t fault_bit(Fault f) { return static_cast<std::uint32_t>(f); }

/// Memory that will soon be read comes nearer.
LACONIC_GPU_FN void fetch_ahead(const Warp& w, const void* memory, std::uint64_t bytes) {
#if defined(__CUDA_ARCH__)
  w.each([&](int l) {
    const auto* p = static_cast<const std::uint8_t*>(memory);
    LACONIC_GPU_KEEP_LOOP
    for (std::uint64_t i = 128 * static_cast<std::uint32_t>(l); i < bytes; i += 128 * warp_lanes)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(p + i));
  });
#else
  static_cast<void>(w), static_cast<void>(memory), static_cast<void>(bytes);
#endif
}

/// Of chunks first .. end - 1 of an array of `count` elements.
template <class T>
LACONIC_GPU_FN void fetch_elements_ahead(const Warp& w, const typename T::Bits* x, std::uint64_t count,
                                         std::uint64_t first, std::uint64_t end) {
  const std::uint64_t last = end * chunk_values < count ? end * chunk_values : count;
  fetch_ahead(w, x + first * chunk_values, (last - first * chunk_values) * sizeof(typename T::Bits));
}
/// Of a frame; slots are not fetched.
LACONIC_GPU_FN void fetch_chunks_ahead(const Warp& w, const Source& source, std::uint64_t first, std::uint64_t end) {
  if (source.offsets == nullptr) return;
  const std::uint64_t from = source.offsets[first];
  const std::uint64_t to = source.offsets[end];
  if (from <= to && to <= source.readable) fetch_ahead(w, source.data + from, to - from);
}

template <class T, class R>
struct EncodeOp {
  const Params& params;
  const typename T::Bits* x;
  std::uint64_t count;  ///< of x

  LACONIC_GPU_FN void expect(const Warp& w, std::uint64_t first, std::uint64_t end) const {
    fetch_elements_ahead<T>(w, x, count, first, end);
  }
  LACONIC_GPU_FN Made make(const Warp& w, std::uint64_t chunk, int n, std::uint8_t* region, std::uint32_t&) const {
    return make_encoded<T, R>(w, params, x + chunk * chunk_values, n, region);
  }
  LACONIC_GPU_FN void place(const Warp& w, std::uint64_t chunk, int n, std::uint8_t* region, const Made& made,
                            std::uint8_t* out) const {
    place_encoded<T, R>(w, params, x + chunk * chunk_values, n, region, made, out);
  }
};

/// Memory for sums of rare chunks, lent to one warp at a time. A warp that has some waits for nobody, so others may
/// wait for it.
struct ScratchPool {
  std::uint8_t* memory = nullptr;  ///< places * bytes, 16-byte aligned
  std::uint32_t* taken = nullptr;  ///< one for each place, zero at first
  std::uint32_t places = 0;
  std::uint32_t bytes = 0;

  LACONIC_GPU_FN std::uint32_t take(const Warp& w, std::uint64_t first) const {
    PerLane<std::uint32_t> place;
    w.each([&](int l) {
      if (l != 0) return;
      place[l] = static_cast<std::uint32_t>(first % places);
      while (swap_if(&taken[place[l]], 0, 1) != 0) place[l] = place[l] + 1 == places ? 0 : place[l] + 1;
      fence();
    });
    return w.from(place, 0);
  }
  LACONIC_GPU_FN void give_back(const Warp& w, std::uint32_t place) const {
    w.each([&](int l) {
      if (l == 0) release(&taken[place]);
    });
  }
};

template <class T, class R>
struct SumOp {
  const SumPlan& plan;
  const typename T::Bits* x;  ///< the local operand, if there is one
  const Source* sources;      ///< of all operands; that of a local one is not used
  ScratchPool pool;
  std::uint64_t count;  ///< elements

  LACONIC_GPU_FN SumInput<T> input_of(std::uint64_t chunk) const {
    return {plan.local ? x + chunk * chunk_values : nullptr, sources, chunk};
  }
  LACONIC_GPU_FN std::uint32_t rare(const Warp& w, std::uint64_t chunk, int n, std::uint8_t* region,
                                    std::uint8_t* out) const {
    const std::uint32_t place = pool.take(w, chunk);
    const std::uint32_t bytes =
        sum_any<T, R>(w, plan, input_of(chunk), n, region, pool.memory + std::size_t{place} * pool.bytes, out);
    pool.give_back(w, place);
    return bytes;
  }
  LACONIC_GPU_FN void expect(const Warp& w, std::uint64_t first, std::uint64_t end) const {
    if (plan.local) fetch_elements_ahead<T>(w, x, count, first, end);
    LACONIC_GPU_KEEP_LOOP
    for (int j = plan.local ? 1 : 0; j < plan.operands; ++j) fetch_chunks_ahead(w, sources[j], first, end);
  }
  LACONIC_GPU_FN Made make(const Warp& w, std::uint64_t chunk, int n, std::uint8_t* region,
                           std::uint32_t& fault) const {
    Made made = sum_fast<T, R>(w, plan, input_of(chunk), n, region);
    if (made.as == Made::As::again) made.bytes = rare(w, chunk, n, region, nullptr);
    if (made.bytes == 0) fault = fault_bit(Fault::corrupt);
    if (made.bytes == chunk_too_large) fault = fault_bit(Fault::too_many_terms);
    if (fault != 0) made.bytes = 0;
    return made;
  }
  LACONIC_GPU_FN void place(const Warp& w, std::uint64_t chunk, int n, std::uint8_t* region, const Made&,
                            std::uint8_t* out) const {
    rare(w, chunk, n, region, out);
  }
};

/// Decodes a chunk of an array of `count` elements.
template <class T, class R>
LACONIC_GPU_FN void decode_one(const Warp& w, const Params& p, const ChunkIn& in, std::uint64_t count,
                               std::uint64_t chunk, typename T::Bits* y, std::uint8_t* region, Report* report) {
  Decoded result = Decoded::corrupt;
  if (in.size != 0) result = decode_chunk<T, R>(w, p, in, elements_in(count, chunk), region, y + chunk * chunk_values);
  if (result == Decoded::done) return;
  const Fault fault = result == Decoded::corrupt ? Fault::corrupt : Fault::too_many_terms;
  w.each([&](int l) {
    if (l == 0) or_shared(&report->faults, fault_bit(fault));
  });
}

/// Decodes a source that holds `count` elements, tile after tile. `regions`: of all warps.
template <class T, class R>
LACONIC_GPU_FN void decode_tiles(const Tile& tile, const Params& p, const Source& source, std::uint64_t count,
                                 typename T::Bits* y, TurnsShared& shared, std::uint8_t* regions, Report* report) {
  const std::uint64_t chunks = slice::chunks_of(count);
  const auto draw = [&](const Warp& w, int turn) {
    w.each([&](int l) {
      if (l == 0) shared.number[turn] = add_shared(&report->begun, 1U);
    });
  };
  tile.each_warp([&](const Warp& w, int k) {
    if (k != 0) return;
    draw(w, 0);
    draw(w, 1);
  });
  std::uint64_t now = shared.number[0];
  std::uint64_t next = shared.number[1];
  tile.each_warp([](const Warp&, int) {});  // before the numbers are written again
  for (int turn = 0; now * tile_warps < chunks; turn ^= 1) {
    tile.each_warp([&](const Warp& w, int k) {
      const std::uint64_t ahead = next * tile_warps;
      if (k == 0) draw(w, turn);
      if (k == 1 && ahead < chunks)
        fetch_chunks_ahead(w, source, ahead, chunks - ahead < tile_warps ? chunks : ahead + tile_warps);
      const std::uint64_t chunk = now * tile_warps + static_cast<std::uint64_t>(k);
      if (chunk < chunks)
        decode_one<T, R>(w, p, source.chunk(chunk), count, chunk, y, regions + k * region_bytes<R>, report);
    });
    now = next;
    next = shared.number[turn];
  }
}

// ------------------------------------------------------------------------------------------------ where chunks begin

/// A frame whose chunks are to be found.
struct Location {
  const std::uint8_t* frame = nullptr;
  std::uint64_t readable = 0;
  std::uint64_t count = 0;
  Params params;  ///< what its header must say
  std::uint64_t* offsets = nullptr;
  std::uint64_t* states = nullptr;
  Report* report = nullptr;
};

/// Chunks whose beginnings a tile finds.
inline constexpr int located_by_warp = 8 * warp_lanes;
inline constexpr int located_by_tile = tile_warps * located_by_warp;

/// Whether the header is that of the announced frame.
LACONIC_GPU_FN bool header_matches(const Location& at) {
  const Grid& g = at.params.grid;
  if (at.readable < frame::header_bytes + slice::table_bytes(at.count)) return false;
  return load32(at.frame + frame::at_magic) == frame::magic && load32(at.frame + frame::at_version) == kind_word(g) &&
         load32(at.frame + frame::at_operands) == at.params.operands &&
         load64(at.frame + frame::at_count) == at.count &&
         load64(at.frame + frame::at_step) == std::bit_cast<std::uint64_t>(g.step) &&
         load64(at.frame + frame::at_bound) == std::bit_cast<std::uint64_t>(g.bound) &&
         load64(at.frame + frame::at_bytes) <= at.readable;
}

LACONIC_GPU_FN std::uint64_t table_entry(const Location& at, std::uint64_t chunk) {
  const std::uint8_t* p = at.frame + frame::header_bytes + 2 * chunk;
  return 4 * (static_cast<std::uint64_t>(p[0]) | static_cast<std::uint64_t>(p[1]) << 8);
}

/// Finds where the chunks of a tile of the table begin. A frame that is not the announced one, or whose sizes do not
/// add up, is a fault, and its chunks are all found to have no bytes.
LACONIC_GPU_FN void run_locate(const Tile& tile, std::uint64_t number, const Location& at, TileShared& shared) {
  const std::uint64_t chunks = slice::chunks_of(at.count);
  const bool valid = header_matches(at);
  const auto first_of = [&](int k, int l) {
    return number * located_by_tile + static_cast<std::uint64_t>(k * located_by_warp + l * 8);
  };
  const auto size_of_run = [&](int k, int l, bool& empty) {
    std::uint64_t sum = 0;
    for (std::uint64_t c = first_of(k, l); c < first_of(k, l) + 8 && c < chunks; ++c) {
      const std::uint64_t n = valid ? table_entry(at, c) : 0;
      empty = empty || n == 0;
      sum += n;
    }
    return sum;
  };
  PerWarp<PerLane<std::uint64_t>> below;
  tile.each_warp([&](const Warp& w, int k) {
    PerLane<bool> empty;
    std::uint64_t total = 0;
    below[k] = w.sum_below<std::uint64_t>([&](int l) { return size_of_run(k, l, empty[l]); }, total);
    const bool fault = w.any([&](int l) { return empty[l]; });
    w.each([&](int l) {
      if (l != 0) return;
      shared.bytes[k] = static_cast<std::uint32_t>(total);
      if (fault) or_shared(&at.report->faults, fault_bit(Fault::corrupt));
    });
  });
  tile.each_warp([&](const Warp& w, int k) {
    if (k != 0) return;
    std::uint64_t total = 0;
    for (const std::uint32_t n : shared.bytes) total += n;
    announce(w, number, total, at.states);
    const std::uint64_t begin =
        frame::header_bytes + slice::table_bytes(at.count) + bytes_up_to(w, number, at.states) - total;
    w.each([&](int l) {
      if (l != 0) return;
      shared.begin = begin;
      if ((number + 1) * located_by_tile < chunks) return;
      at.offsets[chunks] = begin + total;
      if (!valid || begin + total != load64(at.frame + frame::at_bytes))
        or_shared(&at.report->faults, fault_bit(Fault::corrupt));
    });
  });
  tile.each_warp([&](const Warp& w, int k) {
    std::uint64_t begin = shared.begin;
    for (int i = 0; i < k; ++i) begin += shared.bytes[i];
    w.each([&](int l) {
      std::uint64_t offset = begin + below[k][l];
      for (std::uint64_t c = first_of(k, l); c < first_of(k, l) + 8 && c < chunks; ++c) {
        at.offsets[c] = offset;
        offset += valid ? table_entry(at, c) : 0;
      }
    });
  });
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
