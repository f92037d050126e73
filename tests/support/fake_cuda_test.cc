#include "support/fake_cuda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace laconic::fake {
namespace {

struct Device {
  explicit Device(std::size_t n) : bytes(n) { EXPECT_EQ(cudaMalloc(&data, n), cudaSuccess); }
  ~Device() { EXPECT_EQ(cudaFree(data), cudaSuccess); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  void* data = nullptr;
  std::size_t bytes;
};

class FakeCuda : public testing::Test {
 protected:
  void SetUp() override {
    before_ = live();
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(live(), before_) << "something was not released";
  }
  cudaStream_t stream_ = nullptr;

 private:
  Live before_;
};

TEST_F(FakeCuda, NothingHappensBeforeSomebodySynchronises) {
  const std::vector<int> in{1, 2, 3};
  std::vector<int> out(3);
  const Device d(12);
  ASSERT_EQ(cudaMemcpyAsync(d.data, in.data(), 12, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(out.data(), d.data, 12, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_EQ(out, std::vector<int>(3));
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(out, in);
}

TEST_F(FakeCuda, CopiesMustGoTheWayTheySay) {
  int host = 0;
  const Device d(4);
  EXPECT_EQ(cudaMemcpyAsync(&host, d.data, 4, cudaMemcpyHostToDevice, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(FakeCuda, HostCodeCannotTouchDeviceMemoryAndKernelsCan) {
  const Device d(4);
  auto* const value = static_cast<volatile int*>(d.data);
  EXPECT_DEATH(*value = 1, "");
  enqueue(stream_, [=] {
    const DeviceAccess open;
    *value = 5;
    return true;
  });
  int host = 0;
  ASSERT_EQ(cudaMemcpyAsync(&host, d.data, 4, cudaMemcpyDefault, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(host, 5);
  EXPECT_DEATH(*value = 1, "");
}

TEST_F(FakeCuda, AnAllocationsEndIsGuarded) {
  const Device d(10);
  EXPECT_DEATH(DeviceAccess(d.data, 11), "lead beyond");
}

TEST_F(FakeCuda, PointersSayWhatTheyAre) {
  cudaPointerAttributes a{};
  const Device d(10);
  ASSERT_EQ(cudaPointerGetAttributes(&a, static_cast<char*>(d.data) + 9), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeDevice);
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, 10, cudaHostAllocDefault), cudaSuccess);
  ASSERT_EQ(cudaPointerGetAttributes(&a, pinned), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  EXPECT_EQ(a.devicePointer, pinned);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  ASSERT_EQ(cudaPointerGetAttributes(&a, &a), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeUnregistered);
}

TEST_F(FakeCuda, WhatIsNotDoneHoldsUpItsStream) {
  int asked = 0, after = 0;
  enqueue(stream_, [&] { return ++asked == 3; });
  enqueue(stream_, [&] { return ++after == 1; });
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_EQ(after, 0);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaSuccess);
  EXPECT_EQ(after, 1);
}

TEST_F(FakeCuda, EventsOrderStreams) {
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  int order = 0, first = 0, second = 0, behind = 0;
  enqueue(stream_, [&] { return (first = ++order) != 0; });
  ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  enqueue(stream_, [&] { return ++behind == 1; });
  ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
  enqueue(other, [&] { return (second = ++order) != 0; });
  ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(other), cudaErrorInvalidResourceHandle);
}

TEST_F(FakeCuda, ACapturingStreamSaysSoAndCannotBeAwaited) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  ASSERT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  set_capturing(stream_, true);
  ASSERT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  set_capturing(stream_, false);
}

TEST_F(FakeCuda, WhatIsUnsafeBreaksCapturesUnlessItsThreadSaysOtherwise) {
  const auto ask = [] { return cudaFree(nullptr); };
  const auto ask_elsewhere = [&] {
    cudaError_t answer = cudaSuccess;
    std::thread([&] { answer = ask(); }).join();
    return answer;
  };
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(ask_elsewhere(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_, nullptr), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(ask_elsewhere(), cudaSuccess);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_EQ(ask(), cudaSuccess);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream_, nullptr), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(ask(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_, nullptr), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_F(FakeCuda, StreamZeroBelongsToItsDevice) {
  int done = 0;
  enqueue(nullptr, [&] { return ++done == 1; });
  std::thread([] {
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }).join();
  EXPECT_EQ(done, 0);
  std::thread([] { EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess); }).join();
  EXPECT_EQ(done, 1);
}

TEST_F(FakeCuda, TheStreamOfAThreadBelongsToIt) {
  int done = 0;
  enqueue(cudaStreamPerThread, [&] { return ++done == 1; });
  std::thread([] { EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess); }).join();
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(done, 1);
}

TEST_F(FakeCuda, AStreamSaysWhetherItIsOrderedAgainstStreamZero) {
  unsigned flags = cudaStreamDefault;
  EXPECT_EQ(cudaStreamGetFlags(stream_, &flags), cudaSuccess);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  for (const cudaStream_t stream : {blocking, cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    EXPECT_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
    EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamDefault));
  }
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  EXPECT_EQ(cudaStreamGetFlags(blocking, &flags), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

TEST_F(FakeCuda, StreamOrderedMemoryIsFreedInTheStreamsOrder) {
  void* data = nullptr;
  int out = 0;
  ASSERT_EQ(cudaMallocAsync(&data, 4, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(data, 1, 4, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&out, data, 4, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(data, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(out, 0x01010101);
}

TEST_F(FakeCuda, ThreadsWaitForEachOthersWork) {
  constexpr int threads = 4;
  std::atomic<int> arrived = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      ASSERT_EQ(cudaSetDevice(t), cudaSuccess);
      const Device d(64);
      cudaStream_t own = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), cudaSuccess);
      enqueue(own, [&, here = false]() mutable {
        if (!std::exchange(here, true)) ++arrived;
        return arrived == threads;
      });
      std::uint8_t out = 0;
      EXPECT_EQ(cudaMemsetAsync(d.data, t + 1, 64, own), cudaSuccess);
      EXPECT_EQ(cudaMemcpyAsync(&out, d.data, 1, cudaMemcpyDeviceToHost, own), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(own), cudaSuccess);
      EXPECT_EQ(out, t + 1);
      EXPECT_EQ(cudaStreamDestroy(own), cudaSuccess);
    });
  }
  for (std::thread& t : all) t.join();
}

TEST(FakeCudaDevices, AreAsManyAsTheTestSays) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 8);
  EXPECT_EQ(cudaSetDevice(8), cudaErrorInvalidDevice);
  set_device_count(0);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  set_device_count(8);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoDevice);
}

}  // namespace
}  // namespace laconic::fake
