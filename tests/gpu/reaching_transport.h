// A transport whose messages may lie in the memory of a (fake) GPU, as an MPI that knows of GPUs has it: over one that
// knows nothing of them, by copies.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gpu/device_memory.h"
#include "support/over_transport.h"

namespace laconic::test {

class ReachingTransport final : public OverTransport {
 public:
  using OverTransport::OverTransport;

  [[nodiscard]] bool takes_device_memory() const override { return true; }

  Request isend(std::span<const std::uint8_t> data, int to, int tag) override {
    if (!gpu::is_device_pointer(data.data())) return over_.isend(data, to, tag);
    device_bytes_ += data.size();
    auto copy = std::make_unique<Copied>(data.size());
    cudaMemcpy(copy->here.data(), data.data(), data.size(), cudaMemcpyDefault);
    copy->inner = over_.isend(copy->here, to, tag);
    return Request(std::move(copy));
  }
  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override {
    if (!gpu::is_device_pointer(buffer.data())) return over_.irecv(buffer, from, tag);
    auto copy = std::make_unique<Copied>(buffer.size());
    copy->there = buffer.data();
    copy->inner = over_.irecv(copy->here, from, tag);
    return Request(std::move(copy));
  }

  /// Bytes that it has sent from a GPU's memory.
  [[nodiscard]] std::uint64_t device_bytes() const { return device_bytes_; }

 private:
  struct Copied final : Request::State {
    explicit Copied(std::size_t bytes) : here(bytes) {}
    bool test() override {
      if (!inner.test()) return false;
      land();
      return true;
    }
    void wait() override {
      inner.wait();
      land();
    }
    void land() {
      received = inner.received();
      if (there != nullptr) cudaMemcpy(there, here.data(), received, cudaMemcpyDefault);
    }
    std::vector<std::uint8_t> here;
    std::uint8_t* there = nullptr;  ///< of a receive
    Request inner;
  };

  std::uint64_t device_bytes_ = 0;
};

}  // namespace laconic::test
