#include "collective/pool.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace laconic {
namespace {

void keep_for_ever(std::unique_ptr<Message> message) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Message>> kept;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(message));
}

}  // namespace

struct BufferPool::Shelf {
  std::vector<std::unique_ptr<Message>> free;  ///< last in, first out: its pages and cache lines are warm
  std::size_t in_use = 0;
  std::size_t peak = 0;
  bool abandoned = false;

  void give_back(std::unique_ptr<Message> message) {
    in_use -= message->bytes().size();
    if (abandoned) {
      keep_for_ever(std::move(message));
      return;
    }
    message->set_size(0);
    free.push_back(std::move(message));
  }
};

BufferPool::BufferPool(Memory& memory) : memory_(memory), shelf_(std::make_shared<Shelf>()) {}
BufferPool::~BufferPool() = default;

MessagePtr BufferPool::take(std::size_t capacity) {
  auto& free = shelf_->free;
  const auto fits = std::find_if(free.rbegin(), free.rend(), [&](const auto& m) { return m->capacity() >= capacity; });
  std::unique_ptr<Message> message;
  if (fits != free.rend()) {
    message = std::move(*fits);
    free.erase(std::next(fits).base());
  } else {
    if (!free.empty()) free.erase(free.begin());  // too small for today's segments: do not collect all sizes
    message = std::make_unique<Message>(memory_.message_room(capacity), capacity);
  }
  return {message.release(), [shelf = shelf_](Message* m) { shelf->give_back(std::unique_ptr<Message>(m)); }};
}

void BufferPool::filled(const MessagePtr& message, std::size_t size) {
  shelf_->in_use += size - message->bytes().size();
  message->set_size(size);
  shelf_->peak = std::max(shelf_->peak, shelf_->in_use);
}

std::size_t BufferPool::take_peak() { return std::exchange(shelf_->peak, shelf_->in_use); }

void BufferPool::abandon() { shelf_->abandoned = true; }

}  // namespace laconic
