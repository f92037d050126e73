// One chunk's bytes -> elements, by one warp: the fast way, and the way that can do everything. Source: ours.
#pragma once

#include "gpu/encode_chunk.h"
#include "gpu/fast_read.h"
#include "gpu/rare_read.h"
#include "gpu/source.h"

#if defined(__CUDACC__)
#include <cuda_pipeline.h>
#endif

namespace laconic::gpu::LACONIC_GPU_SIDE {

LACONIC_GPU_FN void copy_unit_ahead(std::uint8_t* to, const std::uint8_t* from) {
#if defined(__CUDA_ARCH__)
  __pipeline_memcpy_async(to, from, 16);
#else
  std::memcpy(to, from, 16);
#endif
}

/// Bytes between a region's beginning and those of a chunk that is fetched to it.
LACONIC_GPU_FN std::uint32_t bytes_before_chunk(const ChunkIn& in) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(in.data) & 15);
}

/// Copies a chunk to the region; false where it is too large for that.
LACONIC_GPU_FN bool fetch_chunk(const Warp& w, const ChunkIn& in, std::uint8_t* region, std::uint32_t room) {
  const std::uint32_t before = bytes_before_chunk(in);
  if (in.size > room - 32 - fast_read_slack) return false;
  const std::uint8_t* from = in.data - before;
  const std::uint32_t end = before + in.size;
  const auto there =
      static_cast<std::uint64_t>(in.limit - from);  // only a frame's last unit may not be there as a whole
  const std::uint32_t whole = end <= there - there % 16 ? end : static_cast<std::uint32_t>(there) & ~15U;
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (std::uint32_t i = 16 * static_cast<std::uint32_t>(l); i < whole; i += 16 * warp_lanes)
      copy_unit_ahead(region + i, from + i);
    LACONIC_GPU_KEEP_LOOP
    for (std::uint32_t i = whole + 4 * static_cast<std::uint32_t>(l); i < end; i += 4 * warp_lanes)
      store32(region + i, load32(from + i));
#if defined(__CUDA_ARCH__)
    __pipeline_commit();
    __pipeline_wait_prior(0);
#endif
  });
  return true;
}

/// An element that is stored exactly, or its quotient.
template <class T>
LACONIC_GPU_FN typename T::Bits divided(const Params& p, typename T::Bits e) {
  if (p.divisor == 1) return e;
  return quotient_of<T>(e, [&](auto v) { return bits_of_odd<T>(static_cast<double>(v) / p.divisor); });
}

template <class T>
LACONIC_GPU_FN typename T::Bits value_of_terms(const Params& p, Terms& terms) {
  if (p.divisor != 1) return bits_of_odd<T>(computed(terms.to_double() / p.divisor));
  return bits_of_odd<T>(is_double<T> ? terms.to_double() : terms.to_odd());
}

/// use(f), where f(q, position) is the element that stands for q.
template <class T, class R, class F>
LACONIC_GPU_FN void with_values(const Params& p, F use) {
  if constexpr (!is_double<T>) {
    if (p.narrow_value) {
      const float step = p.step32;
      return use([step](R q, int) { return T::bits(static_cast<float>(static_cast<std::int32_t>(q)) * step); });
    }
  }
  const double step = p.value_step;
  use([step](R q, int) {
    if constexpr (is_double<T>) {
      return T::bits(static_cast<double>(q) * step);
    } else {
      return T::bits(static_cast<float>(static_cast<double>(q) * step));
    }
  });
}

template <class T, class R>
LACONIC_GPU_FN void store_values(const Warp& w, const Params& p, const Rows<R>& rows, typename T::Bits* y, int count) {
  with_values<T, R>(p, [&](auto f) { store_chunk<T>(w, rows, y, count, f); });
}

/// What a stored fill value is decoded to.
template <class T>
LACONIC_GPU_FN typename T::Bits value_of_fill(const Params& p, std::uint64_t fill) {
  if (!p.shape.sum) return divided<T>(p, static_cast<typename T::Bits>(fill));
  const auto stored = std::bit_cast<double>(fill);
  const double v = stored == 0 ? 0 : stored;  // no term is a negative zero
  return bits_of_odd<T>(p.divisor == 1 ? v : computed(v / p.divisor));
}

/// Elements of a chunk with marks; apart, so that others are not stored with registers for these.
template <class T>
LACONIC_GPU_RARE void store_filled(const Warp& w, const Params& p, std::uint8_t* region, PerLane<std::uint64_t> marks,
                                   std::uint64_t fill, typename T::Bits* y, int count) {
  const Rows<std::int32_t> rows(region);
  const typename T::Bits value = value_of_fill<T>(p, fill);
  with_values<T, std::int32_t>(p, [&](auto f) { store_chunk<T>(w, rows, y, count, marks, value, f); });
}

/// A chunk of kind fill. False: it is not a valid one.
template <class T>
LACONIC_GPU_RARE bool decode_fill(const Warp& w, const Params& p, const std::uint8_t* bytes, std::uint32_t size,
                                  typename T::Bits* y, int count) {
  Pieces pieces(bytes, size);
  Start start;
  if (!read_start<std::int32_t>(pieces, p.shape, start) || pieces.left() != 0) return false;
  const typename T::Bits value = value_of_fill<T>(p, start.fill);
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (int i = l; i < count; i += warp_lanes) y[i] = value;
  });
  return true;
}

/// The fast way: 32-bit integers, coded without entries, constant or fill. False: not such a chunk; y is unspecified.
template <class T>
LACONIC_GPU_FN bool decode_fast(const Warp& w, const Params& p, const ChunkIn& in, int count, std::uint8_t* region,
                                typename T::Bits* y) {
  using I = std::int32_t;
  if (!fetch_chunk(w, in, region, region_bytes<I> - PlaneStore::bytes)) return false;
  const std::uint8_t* bytes = region + bytes_before_chunk(in);
  const Rows<I> rows(region);
  FoundParts found;
  PerLane<std::uint64_t> marks;
  const Start& start = found.start;
  const auto to_rows = [&](const PlaneStore& store, auto planes) {
    store.get(w, planes);
    rows_of_planes<false>(w, planes, start.word.predictor, static_cast<I>(start.base), rows);
  };
  if (find_parts(w, bytes, in.size, p.shape, PlaneStore::most, found) == FastRead::done) {
    PlaneStore planes(planes_in_region(region));
    if (!read_planes(w, bytes, found, planes, marks)) return false;
    if (found.widest <= 8) {
      to_rows(planes, PerLane<Planes<1>>{});
    } else {
      to_rows(planes, PerLane<Planes<2>>{});
    }
  } else {
    if (start.word.kind == Kind::fill) return decode_fill<T>(w, p, bytes, in.size, y, count);
    if (!is_constant_chunk(start, in.size)) return false;
    w.each([&](int l) {
      const auto q = static_cast<I>(start.base);
      LACONIC_GPU_UNROLL
      for (int u = 0; u < Rows<I>::units; ++u) rows.unit(l, u) = {{q, q, q, q}};
    });
  }
  if (w.any([&](int l) { return (marks[l] & ~elements_of_block(count, l)) != 0; })) return false;
  if (w.any([&](int l) { return marks[l] != 0; })) {
    store_filled<T>(w, p, region, marks, start.fill, y, count);
  } else {
    store_values<T>(w, p, rows, y, count);
  }
  return true;
}

enum class Decoded { done, corrupt, too_many_terms };

/// Any chunk.
template <class T, class R>
LACONIC_GPU_RARE Decoded decode_any(const Warp& w, const Params& p, const ChunkIn& in, int count, std::uint8_t* region,
                                    typename T::Bits* y) {
  const Rows<R> rows(region);
  OperandStart start;
  PerLane<OperandBlock> parts;
  if (!read_any_chunk<T, R, R>(w, in.data, in.size, p.shape, count, rows, start, parts)) return Decoded::corrupt;
  if (p.shape.exact_only) {
    store_chunk<T>(w, rows, y, count, [](R q, int) {
      return static_cast<typename T::Bits>(slice::order_unmap(q, sizeof(typename T::Bits)));
    });
    return Decoded::done;
  }
  store_values<T>(w, p, rows, y, count);
  const bool failed = w.any([&](int l) {
    // A block of terms needs its row no more: it serves as the memory of an expansion.
    Terms terms(reinterpret_cast<double*>(region + l * (block_values * sizeof(R))), 1);
    for (std::uint64_t m = parts[l].stored; m != 0; m &= m - 1) {
      const int i = trailing_zeros(m);
      typename T::Bits& to = y[block_values * l + i];
      if (!p.shape.sum) {
        to = divided<T>(p, stored_element<T>(start, parts[l], i, rows.at(l, i)));
        continue;
      }
      terms.clear();
      stored_terms(start, parts[l], i, terms);
      to = value_of_terms<T>(p, terms);
    }
    return terms.overflown();
  });
  return failed ? Decoded::too_many_terms : Decoded::done;
}

template <class T, class R>
LACONIC_GPU_FN Decoded decode_chunk(const Warp& w, const Params& p, const ChunkIn& in, int count, std::uint8_t* region,
                                    typename T::Bits* y) {
  if constexpr (sizeof(R) == 4) {
    if (!p.shape.exact_only && decode_fast<T>(w, p, in, count, region, y)) return Decoded::done;
  }
  return decode_any<T, R>(w, p, in, count, region, y);
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
