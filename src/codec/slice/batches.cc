#include "codec/slice/batches.h"

#include <mutex>

namespace laconic::slice {

std::optional<std::size_t> Batches::take() {
  const std::lock_guard lock(lock_);
  if (failed_ || dealt_ == sizes_.size()) return std::nullopt;
  return dealt_++;
}

void Batches::set_size(std::size_t batch, std::size_t bytes) {
  const std::lock_guard lock(lock_);
  sizes_[batch] = bytes;
  std::size_t placed = placed_;
  for (; placed < sizes_.size() && sizes_[placed]; ++placed) begins_[placed + 1] = begins_[placed] + *sizes_[placed];
  placed_.store(placed, std::memory_order_release);
}

void Batches::fail() { failed_ = true; }

bool Batches::wait_for(std::size_t batch) const {
  for (Patience patience; !is_known(batch); patience.wait())
    if (failed_) return false;
  return true;
}

std::size_t Batches::begin_of(std::size_t batch) const { return begins_[batch]; }

}  // namespace laconic::slice
