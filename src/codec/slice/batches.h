// Where batches of chunks go that several threads write: each at once to memory of its own, and from there, while that
// is in its cache, to its place, which is known when all batches before have their sizes.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/spin_lock.h"

namespace laconic::slice {

/// Deals out batches in order, and says where each begins. All functions may be called by several threads at once.
class Batches {
 public:
  explicit Batches(std::size_t n) : sizes_(n), begins_(n + 1) {}

  /// The next batch; none where all are dealt out, or one has failed. Who takes one has to say its size or to fail.
  std::optional<std::size_t> take();
  void set_size(std::size_t batch, std::size_t bytes);
  /// One of them cannot be written: nobody goes on.
  void fail();

  /// Whether all batches before this one have their sizes.
  [[nodiscard]] bool is_known(std::size_t batch) const { return batch <= placed_.load(std::memory_order_acquire); }
  /// Waits until they have. False: one has failed.
  [[nodiscard]] bool wait_for(std::size_t batch) const;
  /// How many bytes those take that are before a batch that is known.
  [[nodiscard]] std::size_t begin_of(std::size_t batch) const;
  /// Of all, when all have their sizes.
  [[nodiscard]] std::size_t total() const { return begin_of(begins_.size() - 1); }

 private:
  SpinLock lock_;
  std::vector<std::optional<std::size_t>> sizes_;
  std::vector<std::size_t> begins_;
  std::size_t dealt_ = 0;
  std::atomic<std::size_t> placed_ = 0;  ///< so many from the first have their sizes, and the one after its beginning
  std::atomic<bool> failed_ = false;
};

}  // namespace laconic::slice
