// Message buffers, reused within a call and from call to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "collective/memory.h"

namespace laconic {

/// What a message is for. Elements may lie where arrays do, where plain code cannot reach them; data of collectives and
/// what is said of failures cannot. Copies of arrays, which no message carries, have room of their own kind.
enum class Content : std::uint8_t { data, elements, copies };

/// One message: `size` of its `capacity` bytes are filled.
class Message {
 public:
  Message(Room room, std::size_t capacity, Content content)
      : bytes_(std::move(room)), capacity_(capacity), content_(content) {}

  /// What its room is for.
  [[nodiscard]] Content content() const { return content_; }

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::span<std::uint8_t> room() { return {bytes_.get(), capacity_}; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_.get(), size_}; }
  void set_size(std::size_t size) { size_ = size; }

 private:
  Room bytes_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  Content content_;
};

/// Shared: a message may be on several links and waiting to be decoded at the same time.
using MessagePtr = std::shared_ptr<Message>;

/// Nothing is freed before the end: on a GPU that waits for the device, where a kernel may be waiting for what this
/// thread is about to send. One thread at a time. Messages may outlive the pool.
class BufferPool {
 public:
  /// `memory`: where room for messages comes from. It must outlive the pool. elements_there: messages of elements get
  /// room for arrays.
  BufferPool(Memory& memory, bool elements_there);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// An empty message with room for at least `capacity` bytes; comes back to the pool when the last owner lets go of
  /// it. Where room for elements is no other, it is for data.
  MessagePtr take(std::size_t capacity, Content wish = Content::data);

  /// Says that a message's size is final, for the account below.
  void filled(const MessagePtr& message, std::size_t size);

  /// Says that a call holds so many bytes that are no messages until it ends.
  void hold_beside(std::size_t bytes);

  /// Most filled bytes in use at one time since the last call of this, and what was held beside.
  std::size_t take_peak();

  /// Messages that are still in use will never be freed: a transport that failed may write to them at any time.
  void abandon();

 private:
  struct Shelf;
  Memory& memory_;
  bool elements_there_;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace laconic
