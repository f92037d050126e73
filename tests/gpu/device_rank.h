// One rank of a test whose arrays lie on the host or in the memory of a GPU, or of what stands in for one.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/fields.h"
#include "core/beside_captures.h"
#include "core/half.h"
#include "gpu/device_memory.h"
#include "transport/transport.h"

namespace laconic::test {

using Bytes = std::vector<std::uint8_t>;

/// One rank's communicator, and arrays where it wants them.
class Rank {
 public:
  Rank(Transport& t, bool on_device) {
    const BesideCaptures beside;
    if (on_device) {
      device_ = std::make_unique<gpu::DeviceMemory>();
      cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
      device_->use(stream_);
    }
    comm_ = std::make_unique<Communicator>(t, Options{}, memory());
  }
  ~Rank() {
    const BesideCaptures beside;
    arrays_.clear();
    comm_.reset();
    device_.reset();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] Communicator& comm() { return *comm_; }
  [[nodiscard]] Memory& memory() { return device_ != nullptr ? *device_ : host_memory(); }
  [[nodiscard]] int rank() const { return comm_->rank(); }
  [[nodiscard]] gpu::DeviceMemory* device() { return device_.get(); }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

  /// An array with these contents.
  MutArray place(const Bytes& contents, DType dtype) {
    arrays_.push_back(memory().array_room(contents.size() + 1));
    memory().copy(arrays_.back().get(), contents.data(), contents.size());
    return {arrays_.back().get(), contents.size() / size_of(dtype), dtype};
  }
  MutArray room(std::size_t count, DType dtype) { return place(Bytes(count * size_of(dtype), 0xA5), dtype); }
  Bytes contents(ConstArray x) {
    Bytes bytes(x.bytes());
    memory().copy(bytes.data(), x.data, x.bytes());
    return bytes;
  }

 private:
  std::unique_ptr<gpu::DeviceMemory> device_;
  std::unique_ptr<Communicator> comm_;
  cudaStream_t stream_ = nullptr;
  std::vector<Room> arrays_;
};

/// Elements that this rank brings.
inline Bytes field(DType dtype, const std::string& kind, std::size_t count, int rank) {
  Bytes bytes(count * size_of(dtype));
  const auto put = [&](auto convert) {
    const auto x = testing_fields::make<double>(kind, count, rank);
    for (std::size_t i = 0; i < count; ++i) {
      const auto v = convert(x[i]);
      std::memcpy(bytes.data() + i * sizeof v, &v, sizeof v);
    }
  };
  if (dtype == DType::f32) put([](double v) { return static_cast<float>(v); });
  if (dtype == DType::f64) put([](double v) { return v; });
  if (dtype == DType::f16) put([](double v) { return f16_of_f32(static_cast<float>(v)); });
  if (dtype == DType::bf16) put([](double v) { return bf16_of_f32(static_cast<float>(v)); });
  if (dtype == DType::i32) put([](double v) { return static_cast<std::int32_t>(v); });
  if (dtype == DType::i64) put([](double v) { return static_cast<std::int64_t>(v); });
  return bytes;
}

}  // namespace laconic::test
