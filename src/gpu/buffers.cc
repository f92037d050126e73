#include "gpu/buffers.h"

#include <algorithm>
#include <cstring>

#include "core/beside_captures.h"
#include "gpu/cuda.h"

namespace laconic::gpu {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20;

/// Of the reports, so that workspaces begin at a line.
constexpr std::size_t reports_bytes = 256;
static_assert(reports_bytes >= Buffers::most_reports * sizeof(Report));

/// CUDA copies memory that is pinned, or memory that is not, but nothing that is both.
bool is_all_of_a_kind(const std::uint8_t* p, std::size_t bytes) {
  if (bytes == 0) return true;
  const auto kind = [](const std::uint8_t* at) {
    cudaPointerAttributes found{};
    check_cuda(cudaPointerGetAttributes(&found, at), "cudaPointerGetAttributes");
    return found.type;
  };
  return kind(p) == kind(p + bytes - 1);
}

/// The last of the blocks, after another one has been added if it has less than `wanted` bytes.
template <typename Allocate>
std::uint8_t* grown(std::vector<void*>& blocks, std::size_t& bytes, std::size_t wanted, Allocate&& allocate) {
  if (wanted > bytes || blocks.empty()) {
    const std::size_t size = std::max({wanted, 2 * bytes, std::size_t{256}});
    blocks.reserve(blocks.size() + 1);
    void* block = nullptr;
    const BesideCaptures beside;
    allocate(&block, size);
    blocks.push_back(block);
    bytes = size;
  }
  return static_cast<std::uint8_t*>(blocks.back());
}

}  // namespace

DeviceBuffer::~DeviceBuffer() {
  const BesideCaptures beside;
  for (void* const block : blocks_) cudaFree(block);
}

std::uint8_t* DeviceBuffer::at_least(std::size_t bytes) {
  return grown(blocks_, bytes_, bytes,
               [](void** block, std::size_t size) { check_cuda(cudaMalloc(block, size), "cudaMalloc"); });
}

PinnedBuffer::~PinnedBuffer() {
  const BesideCaptures beside;
  for (void* const block : blocks_) cudaFreeHost(block);
}

std::uint8_t* PinnedBuffer::at_least(std::size_t bytes) {
  return grown(blocks_, bytes_, bytes, [](void** block, std::size_t size) {
    check_cuda(cudaHostAlloc(block, size, cudaHostAllocDefault), "cudaHostAlloc");
  });
}

OwnStream::OwnStream() {
  const BesideCaptures beside;
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}
OwnStream::~OwnStream() {
  const BesideCaptures beside;
  cudaStreamDestroy(stream_);
}

Buffers::Buffers() { reports_here_.at_least(most_reports * sizeof(Report)); }

Buffers::~Buffers() {
  const BesideCaptures beside;
  if (point_ != nullptr) cudaEventDestroy(point_);
}

void Buffers::follow(Stream other) {
  const BesideCaptures beside;
  if (point_ == nullptr)
    check_cuda(cudaEventCreateWithFlags(&point_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check_cuda(cudaEventRecord(point_, other), "cudaEventRecord");
  check_cuda(cudaStreamWaitEvent(stream_, point_, 0), "cudaStreamWaitEvent");
}

void Buffers::finish() const {
  const BesideCaptures beside;
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void Buffers::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  const BesideCaptures beside;  // what is pageable may be waited for
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
}

/// In pieces, so that nothing has to be allocated for long arrays; each is taken before anything is written over it.
void Buffers::move(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  auto* const aside = elements.at_least(piece);
  for (std::size_t done = 0; done < bytes; done += piece) {
    const std::size_t n = std::min(piece, bytes - done);
    const std::size_t at = to < from ? done : bytes - done - n;
    copy(aside, from + at, n);
    copy(to + at, aside, n);
  }
}

void Buffers::copy_in(std::uint8_t* to_device, const std::uint8_t* from, std::size_t bytes) {
  if (is_all_of_a_kind(from, bytes)) return copy(to_device, from, bytes);
  for (std::size_t at = 0; at < bytes; at += piece) {
    const std::size_t n = std::min(piece, bytes - at);
    auto* const here = pinned.at_least(piece);
    std::memcpy(here, from + at, n);
    copy(to_device + at, here, n);
    finish();
  }
}

void Buffers::copy_out(std::uint8_t* to, const std::uint8_t* from_device, std::size_t bytes) {
  if (is_all_of_a_kind(to, bytes)) return copy(to, from_device, bytes);
  for (std::size_t at = 0; at < bytes; at += piece) {
    const std::size_t n = std::min(piece, bytes - at);
    auto* const here = pinned.at_least(piece);
    copy(here, from_device + at, n);
    finish();
    std::memcpy(to + at, here, n);
  }
}

Workspace Buffers::workspace(std::size_t bytes) {
  return {workspace_.at_least(reports_bytes + bytes) + reports_bytes, bytes};
}

Report* Buffers::report(int i) { return reinterpret_cast<Report*>(workspace_.at_least(0) + reports_bytes) - (i + 1); }

void Buffers::fetch_reports(int n) {
  copy(reports_here_.at_least(0), report(n - 1), static_cast<std::size_t>(n) * sizeof(Report));
}

bool Buffers::are_done() const {
  const BesideCaptures beside;
  const cudaError_t e = cudaStreamQuery(stream_);
  if (e != cudaErrorNotReady) check_cuda(e, "cudaStreamQuery");
  static_cast<void>(cudaGetLastError());
  return e == cudaSuccess;
}

std::array<Report, Buffers::most_reports> Buffers::reports(int n) {
  std::array<Report, most_reports> found;
  std::memcpy(found.data(), reports_here_.at_least(0), static_cast<std::size_t>(n) * sizeof(Report));
  std::reverse(found.begin(), found.begin() + n);
  return found;
}

}  // namespace laconic::gpu
