// The few things of CUDA's runtime that a transport needs, as objects.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace laconic::nccl {

/// Throws Error(transport) with CUDA's own text.
void check(int rank, const char* call, cudaError_t status);

/// Makes a device the current one for a while.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// One that does not wait for stream 0, nor stream 0 for it. Goes before others: it carries little, and others wait.
class Stream {
 public:
  explicit Stream(int rank);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(int rank);
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream);
  /// Whether what was on the stream when it was recorded is done.
  [[nodiscard]] bool passed();

 private:
  int rank_;
  cudaEvent_t event_ = nullptr;
};

enum class Memory : std::uint8_t { pageable, pinned, device };
/// Managed memory counts as the device's.
Memory memory_of(const void* data);
/// Of all of it: what is pinned only at its beginning counts as pageable.
Memory memory_of(std::span<const std::uint8_t> data);

/// Host memory that a GPU reaches, and any other GPU of this process.
class PinnedPool {
 public:
  /// Pages belong to the context of `device`.
  PinnedPool(int rank, int device) : rank_(rank), device_(device) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  /// Goes back to the pool, which must outlive it.
  struct Return {
    PinnedPool* pool = nullptr;
    std::size_t capacity = 0;
    void operator()(std::uint8_t* data) const { pool->free_[capacity].push_back(data); }
  };
  using Pinned = std::unique_ptr<std::uint8_t[], Return>;
  /// At least `bytes`.
  Pinned take(std::size_t bytes);

 private:
  int rank_, device_;
  std::map<std::size_t, std::vector<std::uint8_t*>> free_;  ///< by capacity
};
using Pinned = PinnedPool::Pinned;

}  // namespace laconic::nccl
