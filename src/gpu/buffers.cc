#include "gpu/buffers.h"

#include <algorithm>
#include <cstring>

#include "gpu/cuda.h"

namespace laconic::gpu {

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

std::uint8_t* DeviceBuffer::at_least(std::size_t bytes) {
  if (bytes > bytes_ || data_ == nullptr) {
    check_cuda(cudaFree(data_), "cudaFree");
    data_ = nullptr;
    bytes_ = 0;
    const std::size_t wanted = std::max<std::size_t>(bytes, 256);
    check_cuda(cudaMalloc(&data_, wanted), "cudaMalloc");
    bytes_ = wanted;
  }
  return static_cast<std::uint8_t*>(data_);
}

PinnedBuffer::~PinnedBuffer() { cudaFreeHost(data_); }

std::uint8_t* PinnedBuffer::at_least(std::size_t bytes) {
  if (bytes > bytes_ || data_ == nullptr) {
    check_cuda(cudaFreeHost(data_), "cudaFreeHost");
    data_ = nullptr;
    bytes_ = 0;
    const std::size_t wanted = std::max<std::size_t>(bytes, 256);
    check_cuda(cudaHostAlloc(&data_, wanted, cudaHostAllocDefault), "cudaHostAlloc");
    bytes_ = wanted;
  }
  return static_cast<std::uint8_t*>(data_);
}

Buffers::Buffers() {
  reports_.at_least(most_reports * sizeof(Report));
  reports_here_.at_least(most_reports * sizeof(Report));
}

void Buffers::finish() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

void Buffers::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
}

Report* Buffers::report(int i) { return reinterpret_cast<Report*>(reports_.at_least(0)) + i; }

std::array<Report, Buffers::most_reports> Buffers::finished_reports(int n) {
  std::array<Report, most_reports> found;
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(Report);
  auto* const here = reports_here_.at_least(0);
  copy(here, report(0), bytes);
  finish();
  std::memcpy(found.data(), here, bytes);
  return found;
}

}  // namespace laconic::gpu
