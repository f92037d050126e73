#include "codec/slice/slice.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "codec/slice/kernel_sets.h"
#include "codec/slice/payload_writer.h"
#include "core/cache.h"
#include "core/error.h"
#include "core/extreme.h"
#include "core/share.h"

namespace laconic::slice {
namespace {

/// Whether an array is not to be expected in the caches when it is used next, nor to have been there (Params::stream).
/// Stores past a cache that holds the lines take twice as long as stores to it. Of the largest caches, which serve a
/// hundred cores, no core has a quarter to itself.
bool leaves_caches(std::size_t bytes) {
  constexpr std::size_t least = std::size_t{4} << 20;
  constexpr std::size_t most = std::size_t{48} << 20;
  return bytes >= std::clamp(largest_cache_bytes() / 4, least, most);
}

/// Stores past the caches may be seen after those that follow them, such as one that says they are done.
void finish_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Makes the pages known where the next chunk's elements are to be written: finding where a page lies takes as long as
/// a read from memory, which nothing hides when stores go past the caches.
[[gnu::always_inline]] inline void find_pages(const std::uint8_t* at, std::size_t size) {
  constexpr std::size_t page = 4096;
  for (std::size_t i = 0; i < size; i += page) __builtin_prefetch(at + i);
}

int values_in(std::size_t count, std::size_t chunk) {
  return static_cast<int>(std::min<std::size_t>(chunk_values, count - chunk * chunk_values));
}

std::size_t chunk_size(Bytes payload, std::size_t chunk) {
  return 4 * std::size_t{load<std::uint16_t>(payload.data() + 2 * chunk)};
}

/// Walks ranges of a payload's chunks. The witness sees them, and what is before the payload's first.
class Cursor {
 public:
  explicit Cursor(const Payload& p, Witness* witness = nullptr, bool fetches = true)
      : bytes_(p.bytes), chunks_(chunks_of(p.count)), at_(table_bytes(p.count)), witness_(witness), fetches_(fetches) {}

  /// To the chunks [first, last). None before those that it has been at; all chunks of the last range have been taken.
  void go_to(std::size_t first, std::size_t last) {
    for (; chunk_ < first; ++chunk_) at_ += chunk_size(bytes_, chunk_);
    seen_ = first == 0 ? 0 : at_;
    last_ = last;
  }
  /// Valid until the next call.
  ChunkBytes next() {
    const std::size_t size = chunk_size(bytes_, chunk_++);
    if (at_ - seen_ >= witness_bytes) show(at_);
    if (chunk_ == last_ && last_ != chunks_) show(at_ + size);
    const ChunkBytes b{bytes_.data() + at_, size, bytes_.size() - at_ - size};
    at_ += size;
    if (fetches_) fetch_next();
    return b.readable >= read_slack ? b : padded(b);
  }

 private:
  void show(std::size_t end) {
    if (witness_ != nullptr) witness_->see(bytes_.subspan(seen_, end - seen_));
    seen_ = end;
  }

  /// The chunk after, while this one is worked on: chunks are too short for the hardware to foresee.
  [[gnu::always_inline]] void fetch_next() const {
    if (chunk_ == chunks_) return;
    const std::size_t size = chunk_size(bytes_, chunk_);
    for (std::size_t i = 0; i < size; i += 64) __builtin_prefetch(bytes_.data() + at_ + i);
  }

  /// Kernels may read a little past a chunk. At the end of a payload they get a copy, else they would have to do
  /// without their fast path: many chunks are 4 bytes long, so that is not only the last one.
  ChunkBytes padded(ChunkBytes b) {
    tail_.assign(b.size + read_slack, 0);
    std::memcpy(tail_.data(), b.data, b.size);
    return {tail_.data(), b.size, read_slack};
  }

  Bytes bytes_;
  std::size_t chunks_;
  std::size_t chunk_ = 0;
  std::size_t last_ = 0;
  std::size_t at_;
  Witness* witness_;
  bool fetches_;
  std::size_t seen_ = 0;
  std::vector<std::uint8_t> tail_;
};

std::size_t bytes_of(const Params& p, std::size_t values) {
  return values * static_cast<std::size_t>(p.shape.element_bytes);
}

const std::uint8_t* element_at(const Params& p, const void* x, std::size_t chunk) {
  return static_cast<const std::uint8_t*>(x) + bytes_of(p, chunk * chunk_values);
}

/// What a frame of usual sums has for each chunk: planes of full width, and a two-term expansion for every value.
std::size_t sum_chunk_share(DType dtype) {
  const std::size_t element = size_of(dtype);
  if (!is_float(dtype)) return chunk_capacity(static_cast<int>(element));
  return 1024 + chunk_values * ((element == 8 ? 9 : 5) + 17);
}

/// Encodes the chunks of an array.
class ChunkEncoder {
 public:
  ChunkEncoder(const Params& p, const void* x, std::size_t count) : p_(p), x_(x), count_(count) {}
  void go_to(std::size_t, std::size_t) {}
  /// Whether it fetches where long chunks are to be written.
  [[nodiscard]] static bool fetches_room() { return false; }
  std::size_t write(std::size_t chunk, std::uint8_t* to, std::size_t) {
    return kernels_.encode(p_, element_at(p_, x_, chunk), values_in(count_, chunk), to);
  }

 private:
  const Kernels& kernels_ = kernels();
  const Params& p_;
  const void* x_;
  std::size_t count_;
};

/// Encodes the chunks of an array, and decodes them to y. Each thread has one.
class ChunkRewriter {
 public:
  ChunkRewriter(const Params& p, const void* x, std::size_t count, void* y) : p_(p), x_(x), y_(y), count_(count) {}
  ~ChunkRewriter() {
    if (p_.stream) finish_stores();
  }
  ChunkRewriter(const ChunkRewriter&) = delete;
  ChunkRewriter& operator=(const ChunkRewriter&) = delete;
  void go_to(std::size_t, std::size_t last) { last_ = last; }
  [[nodiscard]] static bool fetches_room() { return false; }
  std::size_t write(std::size_t chunk, std::uint8_t* to, std::size_t) {
    auto* y = const_cast<std::uint8_t*>(element_at(p_, y_, chunk));
    if (chunk + 1 < last_) find_pages(element_at(p_, y_, chunk + 1), bytes_of(p_, chunk_values));
    return kernels_.encode_decode(p_, element_at(p_, x_, chunk), values_in(count_, chunk), to, y);
  }

 private:
  const Kernels& kernels_ = kernels();
  const Params& p_;
  const void* x_;
  void* y_;
  std::size_t count_;
  std::size_t last_ = 0;
};

/// One thread's way through the chunks of a sum.
class ChunkAdder {
 public:
  ChunkAdder(const Params& p, const Local& local, std::span<const Operand> operands)
      : p_(p), local_(local), count_(operands[0].payload.count), terms_(operands.size()) {
    std::uint32_t arrays = local.x != nullptr ? 1 : 0;
    Grid grid = p.grid;
    grid.qbits = local.x != nullptr ? local.params.grid.qbits : 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = operands[i];
      cursors_.emplace_back(o.payload, o.payload.witness, !kernels_.sums_fetch);
      terms_[i].params = &o.params;
      arrays += o.params.operands;
      // A later term's bits must not widen the integers of sums before it: their predictors might be others.
      grid.qbits = std::max(grid.qbits, o.params.grid.qbits);
      partial_.push_back(params_for(grid, arrays));
    }
  }

  [[nodiscard]] bool fetches_room() const { return kernels_.room_fetch; }
  void go_to(std::size_t first, std::size_t last) {
    for (Cursor& c : cursors_) c.go_to(first, last);
  }

  std::size_t write(std::size_t chunk, std::uint8_t* to, std::size_t room) {
    for (std::size_t i = 0; i < terms_.size(); ++i) terms_[i].bytes = cursors_[i].next();
    const int count = values_in(count_, chunk);
    const void* x = local_.x != nullptr ? element_at(local_.params, local_.x, chunk) : nullptr;
    const std::size_t all = terms_.size() + (x != nullptr ? 1 : 0);
    if (all > 2 && all <= most_terms) {
      const std::size_t n = kernels_.sum(p_, x != nullptr ? &local_.params : nullptr, x, terms_, count, to, room);
      if (n != chunk_unfused) return n;
    }
    return one_after_another(x, count, to, room);
  }

 private:
  std::size_t one_after_another(const void* x, int count, std::uint8_t* to, std::size_t room) {
    Term held = x != nullptr ? Term{} : terms_[0];
    std::size_t n = 0;
    for (std::size_t i = x != nullptr ? 0 : 1; i < terms_.size(); ++i) {
      const bool last = i + 1 == terms_.size();
      const Params& p = last ? p_ : partial_[i];
      std::uint8_t* out = last ? to : scratch(i % 2);
      const std::size_t capacity = last ? room : largest_chunk;
      const Term& t = terms_[i];
      n = held.params == nullptr ? kernels_.encode_add(p, local_.params, x, *t.params, t.bytes, count, out, capacity)
                                 : kernels_.add(p, *held.params, held.bytes, *t.params, t.bytes, count, out, capacity);
      if (n == chunk_corrupt || n == chunk_too_large) return n;
      held = {&p, {out, n, write_slack}};
    }
    return n;
  }
  std::uint8_t* scratch(std::size_t which) {
    auto& s = scratch_[which];
    if (!s) s = std::make_unique_for_overwrite<std::uint8_t[]>(largest_chunk + write_slack);
    return s.get();
  }

  const Kernels& kernels_ = kernels();
  const Params& p_;
  const Local& local_;
  std::size_t count_;
  std::vector<Cursor> cursors_;
  std::vector<Term> terms_;
  std::vector<Params> partial_;  ///< of the sums up to each term
  std::array<std::unique_ptr<std::uint8_t[]>, 2> scratch_;
};

/// One thread's way through the chunks of a minimum or maximum, whose elements stay in the first cache.
class ChunkExtremes {
 public:
  ChunkExtremes(Op op, const Params& p, const void* x, std::span<const Operand> operands, std::size_t count)
      : op_(op), p_(p), x_(x), operands_(operands), count_(count) {
    for (const Operand& o : operands) cursors_.emplace_back(o.payload, o.payload.witness);
  }

  [[nodiscard]] static bool fetches_room() { return false; }
  void go_to(std::size_t first, std::size_t last) {
    for (Cursor& c : cursors_) c.go_to(first, last);
  }

  std::size_t write(std::size_t chunk, std::uint8_t* to, std::size_t) {
    const int count = values_in(count_, chunk);
    const void* found = x_ != nullptr ? on_grid(chunk, count) : nullptr;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      std::uint8_t* const values = found == room_->one ? room_->other : room_->one;
      if (!kernels_.decode(operands_[i].params, cursors_[i].next(), count, values)) return chunk_corrupt;
      if (found != nullptr) take_extreme(op_, of(values, count), of(found, count));
      found = values;
    }
    return kernels_.encode(p_, found, count, to);
  }

 private:
  /// For the elements of two chunks.
  struct Room {
    alignas(64) std::uint8_t one[chunk_values * 8];
    alignas(64) std::uint8_t other[chunk_values * 8];
  };

  const void* on_grid(std::size_t chunk, int count) {
    const void* const x = element_at(p_, x_, chunk);
    if (p_.shape.exact_only) return x;
    kernels_.on_grid(p_, x, count, room_->one);
    return room_->one;
  }
  MutArray of(void* values, int count) const { return {values, static_cast<std::size_t>(count), p_.grid.dtype}; }
  ConstArray of(const void* values, int count) const {
    return {values, static_cast<std::size_t>(count), p_.grid.dtype};
  }

  const Kernels& kernels_ = kernels();
  Op op_;
  const Params& p_;
  const void* x_;
  std::span<const Operand> operands_;
  std::size_t count_;
  std::vector<Cursor> cursors_;
  std::unique_ptr<Room> room_ = std::make_unique_for_overwrite<Room>();
};

}  // namespace

std::size_t capacity(DType dtype, std::size_t count) {
  return table_bytes(count) + 4 * chunks_of(count) + pad4(count * size_of(dtype));
}

std::size_t sum_capacity(DType dtype, std::size_t count, std::size_t chunk_bytes) {
  return table_bytes(count) + chunks_of(count) * std::max(sum_chunk_share(dtype), pad4(chunk_bytes));
}

// A plane of a block is eight bytes and their mask; marks are a plane, too.
std::size_t sum_chunk_bytes(int planes, std::size_t exceptions, std::size_t terms) {
  return 1024 + (std::size_t{9} * chunk_blocks * static_cast<std::size_t>(planes + 1)) + exceptions + 8 * terms;
}

Payload check_table(Bytes payload, std::size_t count) {
  const std::size_t chunks = chunks_of(count);
  std::size_t at = table_bytes(count);
  if (payload.size() < at) throw Error(Code::corrupt, "frame: too short for its table of chunk sizes");
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t n = chunk_size(payload, c);
    if (n == 0) throw Error(Code::corrupt, "frame: chunk " + std::to_string(c) + " is empty");
    at += n;
  }
  if (at != payload.size())
    throw Error(Code::corrupt,
                "frame: its chunks take " + std::to_string(at) + " bytes, it has " + std::to_string(payload.size()));
  return {payload, count};
}

std::size_t encode(const Params& p, const void* x, std::size_t count, MutBytes out, int threads, Witness* witness) {
  const Destination to{count, chunk_capacity(p.shape.element_bytes), out, witness};
  return write_payload(to, threads_worth(bytes_of(p, count), threads), [&] { return ChunkEncoder(p, x, count); });
}

std::size_t encode_decode(const Params& params, const void* x, std::size_t count, MutBytes out, void* y, int threads,
                          std::size_t whole_bytes, Witness* witness) {
  Params p = params;
  p.stream = y != x && leaves_caches(std::max(bytes_of(p, count), whole_bytes));  // x has just come to the cache
  const Destination to{count, chunk_capacity(p.shape.element_bytes), out, witness};
  return write_payload(to, threads_worth(bytes_of(p, count), threads), [&] { return ChunkRewriter(p, x, count, y); });
}

std::size_t sum(const Params& p, const Local& local, std::span<const Operand> operands, MutBytes out, int threads,
                Witness* witness) {
  const std::size_t count = operands[0].payload.count;
  const Destination to{count, largest_chunk, out, witness};
  return write_payload(to, threads_worth(bytes_of(p, count), threads), [&] { return ChunkAdder(p, local, operands); });
}

std::size_t extreme(Op op, const Params& p, const void* x, std::span<const Operand> operands, std::size_t count,
                    MutBytes out, int threads, Witness* witness) {
  const Destination to{count, chunk_capacity(p.shape.element_bytes), out, witness};
  return write_payload(to, threads_worth(bytes_of(p, count), threads),
                       [&] { return ChunkExtremes(op, p, x, operands, count); });
}

void decode(const Params& params, const Payload& in, std::size_t first, std::size_t n, void* y, int threads,
            std::size_t whole_bytes) {
  const Kernels& k = kernels();
  const std::size_t chunk_bytes = bytes_of(params, chunk_values);
  Params p = params;
  p.stream = leaves_caches(std::max(n * chunk_bytes, whole_bytes));
  const std::size_t workers = threads_worth(n * chunk_bytes, threads);
  const std::size_t each = workers == 1 ? n : batch_chunks_for(n, workers);
  std::atomic<std::size_t> taken = 0;
  share_work(workers, [&] {
    Cursor cursor(in);
    for (std::size_t begin; (begin = taken.fetch_add(each)) < n;) {
      const std::size_t end = std::min(begin + each, n);
      cursor.go_to(first + begin, first + end);
      for (std::size_t c = begin; c < end; ++c) {
        auto* to = const_cast<std::uint8_t*>(element_at(p, y, c));
        if (c + 1 < end) find_pages(element_at(p, y, c + 1), chunk_bytes);
        if (!k.decode(p, cursor.next(), values_in(in.count, first + c), to)) throw_corrupt(first + c);
      }
    }
    if (p.stream) finish_stores();
  });
}

}  // namespace laconic::slice
