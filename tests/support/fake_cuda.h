// CUDA's runtime API on a machine without a GPU, for tests: the functions of cuda_runtime_api.h that Laconic calls,
// with CUDA's signatures. Link laconic_fake_cuda in place of libcudart.
//
// Stricter than a GPU wherever that finds mistakes:
//  - Device memory is closed (PROT_NONE): host code that touches it crashes. Operations open what they work on.
//  - A stream is a queue that runs only when somebody synchronises, queries or destroys it or asks for an event on it,
//    on the thread that asks. So whoever forgets to synchronise finds nothing done.
//  - Copies from and to pageable memory wait in the stream, too.
//  - cudaFree and cudaFreeHost wait for nothing.
// Less than a GPU: stream 0 is not ordered against other streams; memory and streams of all devices can be used from
// every device.
//
// Ranks are threads of one process; everything here may be called by all of them at once. A wait that lasts longer than
// set_patience() says is taken for a deadlock: it ends the program.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace laconic::fake {

/// Work of an emulated kernel or of the fake NCCL: true when done, false to be asked again later. What lies behind it
/// in the stream waits.
using Work = std::function<bool()>;

/// Runs on the thread that asks for the stream, with the stream's device as the current one.
void enqueue(cudaStream_t stream, Work work);

/// Device memory may be touched while one of these lives, from any thread. Counted.
class DeviceAccess {
 public:
  /// All memory of the current device: what a kernel sees.
  DeviceAccess();
  /// The allocation that `begin` lies in. Nothing for host memory; ends the program where `bytes` lead beyond.
  DeviceAccess(const void* begin, std::size_t bytes);
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  int device_;
  const void* begin_;
};

/// Devices that cudaGetDeviceCount finds: 8 unless said otherwise. 0: CUDA finds none.
void set_device_count(int devices);

/// Whether cudaStreamIsCapturing says so. While it does, the stream cannot be synchronised, as in CUDA.
void set_capturing(cudaStream_t stream, bool capturing);

/// Whether what CUDA calls potentially unsafe is forbidden to this thread, since a stream is captured (by
/// cudaStreamBeginCapture, in a mode that concerns it) and the thread has not asked for cudaStreamCaptureModeRelaxed.
/// The captures that forbid it are invalid then. Noted as the thread's last error.
bool breaks_a_capture();

/// Seconds until a wait is a deadlock: 60 unless said otherwise.
void set_patience(double seconds);

/// How often memory was freed or is pinned no more, by all threads: each time CUDA may wait for the device.
std::size_t frees();

/// What has been made and not yet released, by all threads.
struct Live {
  std::size_t device_allocations = 0, pinned_allocations = 0, streams = 0, events = 0;
  friend bool operator==(const Live&, const Live&) = default;
};
Live live();

// --- for the parts of the fake itself ---
/// Keeps an error for cudaGetLastError and returns it.
cudaError_t note(cudaError_t error);
/// Prints why and ends the program.
[[noreturn]] void give_up(const char* format, ...) __attribute__((format(printf, 1, 2)));
/// Gives the core away; `what` has waited since `since` (seconds of now()), for too long if this does not return.
void keep_waiting(double since, const char* what);
double now();

}  // namespace laconic::fake
