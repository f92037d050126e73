// Writes the chunks of a payload and the table of their sizes, with one thread straight to their places, with several
// by batches (batches.h). Source: ours.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/slice/batches.h"
#include "codec/slice/kernels.h"
#include "codec/slice/layout.h"
#include "codec/slice/slice.h"
#include "codec/witness.h"
#include "core/error.h"
#include "core/share.h"

namespace laconic::slice {

/// A witness sees pieces of about this size: small beside a cache, large beside the cost of looking.
inline constexpr std::size_t witness_bytes = std::size_t{32} << 10;

/// Where a payload is written to.
struct Destination {
  std::size_t count;        ///< elements
  std::size_t chunk_limit;  ///< no chunk can be larger
  MutBytes out;             ///< for the payload; more than it takes may be written to
  Witness* witness;         ///< of what is written, or null
};

[[noreturn]] inline void throw_corrupt(std::size_t chunk) {
  throw Error(Code::corrupt, "frame: chunk " + std::to_string(chunk) + " is not a valid slice chunk");
}

/// What a kernel says of a chunk's bytes.
inline std::size_t checked(std::size_t chunk, std::size_t n) {
  if (n == chunk_corrupt) throw_corrupt(chunk);
  if (n > largest_chunk)  // chunk_too_large, too
    throw Error(Code::too_small, "out: the exact sums of chunk " + std::to_string(chunk) +
                                     " need more room than a frame has (values of absurdly different size)");
  return n;
}

/// Writes chunks one after another into [begin, end), through a scratch chunk where a kernel might write past the end.
class Sink {
 public:
  /// `most_fetched`: the longest chunk whose successor's room is to be fetched.
  Sink(std::uint8_t* begin, std::uint8_t* end, std::size_t chunk_limit, Witness* witness, std::size_t most_fetched)
      : begin_(begin),
        at_(begin),
        end_(end),
        limit_(chunk_limit),
        witness_(witness),
        most_fetched_(most_fetched),
        seen_(begin) {}

  /// write(buffer, capacity) returns the chunk's bytes. Returns them too.
  template <class Write>
  std::size_t put(std::size_t chunk, Write write) {
    const auto room = static_cast<std::size_t>(end_ - at_);
    if (room >= limit_ + write_slack) {
      fetch_next();
      return last_ = advance(checked(chunk, write(at_, room - write_slack)));
    }
    if (!scratch_) scratch_ = std::make_unique_for_overwrite<std::uint8_t[]>(limit_ + write_slack);
    const std::size_t n = checked(chunk, write(scratch_.get(), limit_));
    if (n > room) throw_no_room(chunk);
    std::memcpy(at_, scratch_.get(), n);
    return advance(n);
  }
  [[nodiscard]] const std::uint8_t* begin() const { return begin_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }

  [[noreturn]] static void throw_no_room(std::size_t chunk) {
    throw Error(Code::too_small, "out: too small for chunk " + std::to_string(chunk) + " of the frame");
  }

 private:
  /// Lines that the chunk after is likely to be written to, while this one is: stores wait for theirs one after the
  /// other.
  [[gnu::always_inline]] void fetch_next() const {
    if (last_ > most_fetched_) return;
    for (std::size_t i = last_; i < 2 * last_; i += 64) __builtin_prefetch(at_ + i, 1);
  }
  std::size_t advance(std::size_t n) {
    at_ += n;
    if (at_ - seen_ >= static_cast<std::ptrdiff_t>(witness_bytes)) {
      if (witness_ != nullptr) witness_->see({seen_, at_});
      seen_ = at_;
    }
    return n;
  }
  std::uint8_t* begin_;
  std::uint8_t* at_;
  std::uint8_t* end_;
  std::size_t limit_;
  Witness* witness_;
  std::size_t most_fetched_;
  std::uint8_t* seen_;
  std::size_t last_ = 0;  ///< bytes of the chunk before
  std::unique_ptr<std::uint8_t[]> scratch_;
};

/// What a Sink leaves to a writer that fetches where its next chunk goes.
template <class Writer>
std::size_t most_fetched(const Writer& writer) {
  return writer.fetches_room() ? fetched_at_once : largest_chunk;
}

/// A batch in a thread's own memory.
class Slot {
 public:
  void begin(std::size_t batch) {
    batch_ = batch;
    size_ = 0;
  }
  /// As Sink's.
  template <class Write>
  std::size_t put(std::size_t chunk, std::size_t chunk_limit, Write write) {
    if (capacity_ - size_ < chunk_limit + write_slack) grow(chunk_limit + write_slack);
    const std::size_t n = checked(chunk, write(bytes_.get() + size_, capacity_ - size_ - write_slack));
    size_ += n;
    return n;
  }
  [[nodiscard]] std::size_t batch() const { return batch_; }
  [[nodiscard]] Bytes bytes() const { return {bytes_.get(), size_}; }

 private:
  void grow(std::size_t room) {
    const std::size_t capacity = 2 * (size_ + room);
    auto bytes = std::make_unique_for_overwrite<std::uint8_t[]>(capacity);
    if (size_ != 0) std::memcpy(bytes.get(), bytes_.get(), size_);
    bytes_ = std::move(bytes);
    capacity_ = capacity;
  }
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  std::size_t batch_ = 0;
};

/// A thread's batches that wait for their places, in the order in which they were written.
class Waiting {
 public:
  [[nodiscard]] bool empty() const { return slots_.empty(); }
  [[nodiscard]] bool full() const { return slots_.size() >= 2 && (bytes_ >= most_bytes || slots_.size() >= most); }
  Slot& oldest() { return slots_.front(); }
  void add(Slot slot) {
    bytes_ += slot.bytes().size();
    slots_.push_back(std::move(slot));
  }
  void drop_oldest() {
    bytes_ -= oldest().bytes().size();
    add_free(std::move(oldest()));
    slots_.pop_front();
  }
  void add_free(Slot slot) { free_.push_back(std::move(slot)); }
  /// The one that was used last, of those that are free: it is the likeliest to be in the cache.
  Slot take_free() {
    if (free_.empty()) return {};
    Slot slot = std::move(free_.back());
    free_.pop_back();
    return slot;
  }

 private:
  /// A core's own cache should hold them. Few chunks that take long may be worth many that do not.
  static constexpr std::size_t most_bytes = std::size_t{512} << 10;
  static constexpr std::size_t most = 16;  // each has room for the largest chunk
  std::deque<Slot> slots_;
  std::vector<Slot> free_;
  std::size_t bytes_ = 0;
};

/// One of the threads that write a payload by batches.
class BatchWriter {
 public:
  BatchWriter(const Destination& to, std::size_t batch_chunks, Batches& batches)
      : to_(to), batch_chunks_(batch_chunks), batches_(batches) {}

  /// Works until no batch is left. Returns early where another thread has failed; an Error here stops all others.
  template <class Writer>
  void run(Writer&& writer) {
    try {
      while (const auto batch = batches_.take()) {
        write(*batch, writer);
        while (!waiting_.empty() && batches_.is_known(waiting_.oldest().batch())) settle_oldest();
        if (waiting_.full() && !batches_.wait_for(waiting_.oldest().batch())) return;
      }
      for (; !waiting_.empty(); settle_oldest())
        if (!batches_.wait_for(waiting_.oldest().batch())) return;
    } catch (...) {
      batches_.fail();
      throw;
    }
  }

 private:
  [[nodiscard]] std::size_t first_of(std::size_t batch) const { return batch * batch_chunks_; }
  [[nodiscard]] std::uint8_t* out_end() const { return to_.out.data() + to_.out.size(); }

  /// To memory of its own until the batch's place is known, and from then on straight there.
  template <class Writer>
  void write(std::size_t batch, Writer& writer) {
    Slot slot = waiting_.take_free();
    slot.begin(batch);
    std::optional<Sink> in_place;
    const std::size_t first = first_of(batch);
    const std::size_t last = std::min(first + batch_chunks_, chunks_of(to_.count));
    writer.go_to(first, last);
    for (std::size_t c = first; c < last; ++c) {
      const auto one = [&](std::uint8_t* chunk, std::size_t room) { return writer.write(c, chunk, room); };
      if (!in_place && batches_.is_known(batch)) {
        std::uint8_t* const place = move(slot);
        in_place.emplace(place + slot.bytes().size(), out_end(), to_.chunk_limit, nullptr, most_fetched(writer));
      }
      const std::size_t n = in_place ? in_place->put(c, one) : slot.put(c, to_.chunk_limit, one);
      store(to_.out.data() + 2 * c, static_cast<std::uint16_t>(n / 4));
    }
    batches_.set_size(batch, slot.bytes().size() + (in_place ? in_place->size() : 0));
    if (!in_place) return waiting_.add(std::move(slot));
    show({in_place->begin() - slot.bytes().size(), slot.bytes().size() + in_place->size()});
    waiting_.add_free(std::move(slot));
  }

  /// What has been written of a batch, to its place, which is known. Returns that.
  std::uint8_t* move(const Slot& slot) {
    const Bytes bytes = slot.bytes();
    const std::size_t at = table_bytes(to_.count) + batches_.begin_of(slot.batch());
    if (at + bytes.size() > to_.out.size()) Sink::throw_no_room(first_without_room(slot.batch(), at));
    std::uint8_t* const to = to_.out.data() + at;
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return to;
  }
  void settle_oldest() {
    show({move(waiting_.oldest()), waiting_.oldest().bytes().size()});
    waiting_.drop_oldest();
  }
  void show(Bytes written) const {
    if (to_.witness != nullptr) to_.witness->see(written);
  }
  /// As one thread would say it.
  [[nodiscard]] std::size_t first_without_room(std::size_t batch, std::size_t at) const {
    std::size_t chunk = first_of(batch);
    for (; (at += 4 * std::size_t{load<std::uint16_t>(to_.out.data() + 2 * chunk)}) <= to_.out.size(); ++chunk) {
    }
    return chunk;
  }

  const Destination& to_;
  std::size_t batch_chunks_;
  Batches& batches_;
  Waiting waiting_;
};

/// So many chunks are written by a thread before it takes others: a few times what it costs to take them, and few
/// enough that a cache holds them and that all threads end at about the same time.
inline std::size_t batch_chunks_for(std::size_t chunks, std::size_t threads) {
  return std::clamp<std::size_t>(chunks / (4 * threads), 1, 128);
}

/// Returns the payload's bytes. Each thread has a writer from start(): writer.go_to(first, last), then for each of
/// those chunks writer.write(chunk, to, capacity), which returns as kernels do; ranges come in ascending order.
template <class Start>
std::size_t write_payload(const Destination& to, std::size_t threads, Start start) {
  const MutBytes out = to.out;
  const std::size_t chunks = chunks_of(to.count);
  const std::size_t table = table_bytes(to.count);
  if (out.size() < table)
    throw Error(Code::too_small, "out: " + std::to_string(out.size()) + " bytes cannot hold the frame");
  if (chunks % 2 != 0) store(out.data() + 2 * chunks, std::uint16_t{0});
  if (threads > 1) {
    const std::size_t each = batch_chunks_for(chunks, threads);
    Batches batches((chunks + each - 1) / each);
    share_work(threads, [&] { BatchWriter(to, each, batches).run(start()); });
    return table + batches.total();
  }
  auto writer = start();
  Sink sink(out.data() + table, out.data() + out.size(), to.chunk_limit, to.witness, most_fetched(writer));
  writer.go_to(0, chunks);
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::size_t n =
        sink.put(c, [&](std::uint8_t* chunk, std::size_t room) { return writer.write(c, chunk, room); });
    store(out.data() + 2 * c, static_cast<std::uint16_t>(n / 4));
  }
  return table + sink.size();
}

}  // namespace laconic::slice
