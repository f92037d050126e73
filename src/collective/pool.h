// Message buffers, reused within a call and from call to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "collective/memory.h"

namespace laconic {

/// One message: `size` of its `capacity` bytes are filled.
class Message {
 public:
  Message(Room room, std::size_t capacity) : bytes_(std::move(room)), capacity_(capacity) {}

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::span<std::uint8_t> room() { return {bytes_.get(), capacity_}; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_.get(), size_}; }
  void set_size(std::size_t size) { size_ = size; }

 private:
  Room bytes_;
  std::size_t capacity_;
  std::size_t size_ = 0;
};

/// Shared: a message may be on several links and waiting to be decoded at the same time.
using MessagePtr = std::shared_ptr<Message>;

/// One thread at a time. Messages may outlive the pool.
class BufferPool {
 public:
  /// `memory`: where room for messages comes from. It must outlive the pool.
  explicit BufferPool(Memory& memory);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// An empty message with room for at least `capacity` bytes; comes back to the pool when the last owner lets go of
  /// it.
  MessagePtr take(std::size_t capacity);

  /// Says that a message's size is final, for the account below.
  void filled(const MessagePtr& message, std::size_t size);

  /// Most filled bytes in use at one time since the last call of this.
  std::size_t take_peak();

  /// Messages that are still in use will never be freed: a transport that failed may write to them at any time.
  void abandon();

 private:
  struct Shelf;
  Memory& memory_;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace laconic
