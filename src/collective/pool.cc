#include "collective/pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace laconic {
namespace {

/// MPI may still write to it. Where there is no memory to note it, it is not noted.
void keep_for_ever(std::unique_ptr<Message> message) noexcept {
  Message* const its = message.release();
  try {
    static std::mutex mutex;
    static std::vector<Message*>& kept = *new std::vector<Message*>;
    const std::lock_guard lock(mutex);
    kept.push_back(its);
  } catch (const std::bad_alloc&) {
    return;
  }
}

}  // namespace

struct BufferPool::Shelf {
  using Free = std::vector<std::unique_ptr<Message>>;  ///< last in, first out: its pages and cache lines are warm
  std::array<Free, 3> free;                            ///< by content
  std::array<std::size_t, 3> longest{};                ///< that there has been
  std::size_t in_use = 0;
  std::size_t peak = 0;
  std::size_t beside = 0;  ///< no messages
  bool abandoned = false;

  Free& of(Content content) { return free[static_cast<std::size_t>(content)]; }

  /// What a message gets that needs room for so many bytes. Few lengths, since none is freed before the end: where one
  /// that is longer than all before is at least twice as long, what has been outgrown is no more than what has not.
  std::size_t length_for(Content content, std::size_t wanted) {
    std::size_t& most = longest[static_cast<std::size_t>(content)];
    if (wanted > most) return most = std::max(wanted, 2 * most);
    return std::min(std::bit_ceil(wanted), most);
  }

  /// A deleter's, which must not throw: where there is no memory to keep the message, it is freed.
  void give_back(std::unique_ptr<Message> message) noexcept {
    in_use -= message->bytes().size();
    if (abandoned) {
      keep_for_ever(std::move(message));
      return;
    }
    message->set_size(0);
    try {
      of(message->content()).push_back(std::move(message));
    } catch (const std::bad_alloc&) {
      return;
    }
  }
};

namespace {

Room room_for(Memory& memory, Content content, std::size_t bytes) {
  switch (content) {
    case Content::elements:
      return memory.array_room(bytes);
    case Content::copies:
      return memory.copy_room(bytes);
    default:
      return memory.message_room(bytes);
  }
}

}  // namespace

BufferPool::BufferPool(Memory& memory, bool elements_there)
    : memory_(memory), elements_there_(elements_there), shelf_(std::make_shared<Shelf>()) {}
BufferPool::~BufferPool() = default;

MessagePtr BufferPool::take(std::size_t capacity, Content wish) {
  const Content content = wish == Content::elements && !elements_there_ ? Content::data : wish;
  auto& free = shelf_->of(content);
  const auto fits = std::find_if(free.rbegin(), free.rend(), [&](const auto& m) { return m->capacity() >= capacity; });
  std::unique_ptr<Message> message;
  if (fits != free.rend()) {
    message = std::move(*fits);
    free.erase(std::next(fits).base());
  } else {
    const std::size_t length = shelf_->length_for(content, capacity);
    message = std::make_unique<Message>(room_for(memory_, content, length), length, content);
  }
  return {message.release(), [shelf = shelf_](Message* m) { shelf->give_back(std::unique_ptr<Message>(m)); }};
}

void BufferPool::filled(const MessagePtr& message, std::size_t size) {
  shelf_->in_use += size - message->bytes().size();
  message->set_size(size);
  shelf_->peak = std::max(shelf_->peak, shelf_->in_use);
}

void BufferPool::hold_beside(std::size_t bytes) { shelf_->beside += bytes; }

std::size_t BufferPool::take_peak() {
  return std::exchange(shelf_->peak, shelf_->in_use) + std::exchange(shelf_->beside, 0);
}

void BufferPool::abandon() { shelf_->abandoned = true; }

}  // namespace laconic
