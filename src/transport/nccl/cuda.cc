#include "transport/nccl/cuda.h"

#include <algorithm>
#include <bit>
#include <string>

#include "core/beside_captures.h"
#include "core/error.h"

namespace laconic::nccl {
namespace {

constexpr std::size_t least_capacity = 4096;

}  // namespace

void check(int rank, const char* call, cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // it has been told
  throw Error(Code::transport, "rank " + std::to_string(rank) + ": " + call + " failed: " + cudaGetErrorString(status));
}

OnDevice::OnDevice(int device) {
  if (cudaGetDevice(&before_) != cudaSuccess || before_ == device) return;
  changed_ = cudaSetDevice(device) == cudaSuccess;
}

OnDevice::~OnDevice() {
  if (changed_) cudaSetDevice(before_);
}

Stream::Stream(int rank) {
  const BesideCaptures beside;
  int least = 0, greatest = 0;
  check(rank, "cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &greatest));
  check(rank, "cudaStreamCreateWithPriority", cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
}

Event::Event(int rank) : rank_(rank) {
  check(rank, "cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

Stream::~Stream() {
  const BesideCaptures beside;
  cudaStreamDestroy(stream_);
}

void Event::record(cudaStream_t stream) { check(rank_, "cudaEventRecord", cudaEventRecord(event_, stream)); }

bool Event::passed() {
  const BesideCaptures beside;
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // no error, but kept as one
    return false;
  }
  check(rank_, "cudaEventQuery", status);
  return true;
}

Memory memory_of(const void* data) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    cudaGetLastError();
    return Memory::pageable;
  }
  switch (attributes.type) {
    case cudaMemoryTypeDevice:
    case cudaMemoryTypeManaged:
      return Memory::device;
    case cudaMemoryTypeHost:
      return Memory::pinned;
    default:
      return Memory::pageable;
  }
}

Memory memory_of(std::span<const std::uint8_t> data) {
  if (data.empty()) return Memory::pageable;
  const Memory first = memory_of(data.data());
  return first == Memory::pinned ? memory_of(&data.back()) : first;
}

PinnedPool::~PinnedPool() {
  const BesideCaptures beside;
  for (const auto& [capacity, all] : free_) {
    for (std::uint8_t* data : all) cudaFreeHost(data);
  }
}

Pinned PinnedPool::take(std::size_t bytes) {
  const std::size_t capacity = std::bit_ceil(std::max(bytes, least_capacity));
  auto& free = free_[capacity];
  if (free.empty()) {
    const BesideCaptures beside;
    const OnDevice as(device_);
    void* data = nullptr;
    check(rank_, "cudaHostAlloc", cudaHostAlloc(&data, capacity, cudaHostAllocPortable));
    return {static_cast<std::uint8_t*>(data), {this, capacity}};
  }
  std::uint8_t* const data = free.back();
  free.pop_back();
  return {data, {this, capacity}};
}

}  // namespace laconic::nccl
