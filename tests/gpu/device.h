// What the tests on a real device share: is there one, and memory on it.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace laconic::test {

/// Why no kernel can run here; empty where one can.
inline std::string no_device() {
  int n = 0;
  const cudaError_t e = cudaGetDeviceCount(&n);
  if (e != cudaSuccess) return std::string("no usable GPU: ") + cudaGetErrorString(e);
  if (n == 0) return "no GPU";
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  if (major < 8) return "the GPU is older than compute capability 8.0";
  return {};
}

inline void must(cudaError_t e) {
  if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

/// For tests of a device: skipped, with the reason, where there is none.
template <class Base>
class OnDevice : public Base {
 protected:
  void SetUp() override {
    const std::string why = no_device();
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

/// Bytes on the device.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t n) : size_(n) { must(cudaMalloc(&p_, n + 256)); }
  DeviceMemory(const void* from, std::size_t n) : DeviceMemory(n) { must(cudaMemcpy(p_, from, n, cudaMemcpyDefault)); }
  ~DeviceMemory() { cudaFree(p_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::uint8_t* data() const { return static_cast<std::uint8_t*>(p_); }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(p_);
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::vector<std::uint8_t> bytes(std::size_t n) const {
    std::vector<std::uint8_t> v(n);
    must(cudaMemcpy(v.data(), p_, n, cudaMemcpyDeviceToHost));
    return v;
  }

 private:
  std::size_t size_;
  void* p_ = nullptr;
};

}  // namespace laconic::test
