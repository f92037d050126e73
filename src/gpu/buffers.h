// A stream, and memory for what is under way on it: kept from call to call, since allocating waits for the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/codec.h"
#include "gpu/plan.h"

namespace laconic::gpu {

/// Grows when asked for more, at least twofold; what it held is lost then. What it has outgrown is freed at its end: to
/// free waits for the device, where a kernel may be waiting for what this thread is about to send.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  /// Nothing may be using it. At least 256 bytes, aligned to 256.
  std::uint8_t* at_least(std::size_t bytes);

 private:
  std::vector<void*> blocks_;  ///< the last one is in use
  std::size_t bytes_ = 0;
};

/// The same in pinned memory of the host.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  std::uint8_t* at_least(std::size_t bytes);

 private:
  std::vector<void*> blocks_;
  std::size_t bytes_ = 0;
};

/// A stream of our own, which neither waits for the default stream nor holds it up.
class OwnStream {
 public:
  OwnStream();
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  [[nodiscard]] Stream get() const { return stream_; }

 private:
  Stream stream_ = nullptr;
};

/// One thread at a time.
class Buffers {
 public:
  static constexpr int most_frames = most_operands + 1;   // of a sum, and its result
  static constexpr int most_reports = 1 + most_operands;  // a sum's, and its operands' checksums

  Buffers();
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  [[nodiscard]] Stream stream() const { return stream_; }
  void use(Stream stream) { stream_ = stream; }
  /// What is enqueued from now on comes after what `other` has been given so far.
  void follow(Stream other);
  /// Waits until all that was enqueued is done.
  void finish() const;

  /// Enqueues a copy in any direction.
  void copy(void* to, const void* from, std::size_t bytes) const;
  /// The same where the two overlap: CUDA has no memmove. By way of `elements`.
  void move(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes);
  /// The same of a message, between the device and the host; may be done when it returns.
  void copy_in(std::uint8_t* to_device, const std::uint8_t* from, std::size_t bytes);
  void copy_out(std::uint8_t* to, const std::uint8_t* from_device, std::size_t bytes);

  DeviceBuffer frames[most_frames];
  DeviceBuffer elements;          ///< plain ones, on their way
  DeviceBuffer decoded, on_grid;  ///< values that are to be compared
  PinnedBuffer pinned;            ///< small things on their way to the host

  /// Bytes an element of the frames that were written last: of what was encoded, and of a sum.
  struct Lengths {
    double encoded = 0, summed = 0;
  } lengths;

  /// For the next operation, with the reports right before it, the first one last: one memset clears what it uses.
  [[nodiscard]] Workspace workspace(std::size_t bytes);
  /// In device memory, where they move with the workspace.
  [[nodiscard]] Report* report(int i);
  /// Enqueues a copy of the first n of them.
  void fetch_reports(int n);
  /// Whether they are there, and all that was enqueued is done.
  [[nodiscard]] bool are_done() const;
  /// What is in them, when that is so.
  [[nodiscard]] std::array<Report, most_reports> reports(int n);

 private:
  Stream stream_ = nullptr;
  Event point_ = nullptr;  ///< in a stream that is followed; made when that is first asked for
  DeviceBuffer workspace_;
  PinnedBuffer reports_here_;  ///< in the same order
};

/// What steps of a kernel work with that are under way at once. The second has a stream of our own.
struct Lanes {
  Buffers& first;
  Buffers& second;
};

}  // namespace laconic::gpu
