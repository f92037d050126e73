// Streams, events, devices and errors.
#include "support/fake_cuda.h"

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace laconic::fake {

void count_allocations(Live& into);  // fake_cuda_memory.cc

namespace {

std::atomic<int> device_count = 8;
std::atomic<double> patience = 60;
thread_local int selected_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

/// Sets the device for as long as work of another one runs.
class OnDevice {
 public:
  explicit OnDevice(int device) : before_(std::exchange(selected_device, device)) {}
  ~OnDevice() { selected_device = before_; }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

class Stream {
 public:
  Stream(int device, unsigned flags) : device_(device), flags_(flags) {}

  void add(Work work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }

  /// Runs what can run. True if nothing is left. Where another thread, or this one further up, is at it: false.
  bool advance() {
    std::unique_lock lock(mutex_);
    if (running_) return false;
    running_ = true;
    const OnDevice as(device_);
    while (!queue_.empty()) {
      Work& first = queue_.front();  // stays where it is when others are added
      lock.unlock();
      const bool done = first();
      lock.lock();
      if (!done) break;
      Work finished = std::move(first);
      queue_.pop_front();
    }
    running_ = false;
    return queue_.empty();
  }

  void drain() {
    const double since = now();
    while (!advance()) keep_waiting(since, "a stream");
  }

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] unsigned flags() const { return flags_; }
  std::atomic<bool> capturing = false, capture_is_broken = false;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  ///< of its capture
  std::thread::id captured_by;

 private:
  const int device_;
  const unsigned flags_;
  std::mutex mutex_;
  std::deque<Work> queue_;
  bool running_ = false;
};

/// One cudaEventRecord.
struct Record {
  explicit Record(std::shared_ptr<Stream> s) : stream(std::move(s)) {}
  bool test() { return done || (stream->advance(), done.load()); }
  std::atomic<bool> done = false;
  const std::shared_ptr<Stream> stream;
};

struct World {
  std::mutex mutex;
  std::map<cudaStream_t, std::shared_ptr<Stream>> streams;
  std::map<int, std::shared_ptr<Stream>> legacy;          ///< stream 0, by device
  std::map<cudaEvent_t, std::shared_ptr<Record>> events;  ///< the last record, null before the first
};

World& world() {
  static World* const it = new World;  // outlives every thread
  return *it;
}

/// Null where there is no such stream.
std::shared_ptr<Stream> find(cudaStream_t handle) {
  thread_local const auto of_this_thread = std::make_shared<Stream>(selected_device, cudaStreamDefault);
  if (handle == cudaStreamPerThread) return of_this_thread;
  const std::lock_guard lock(world().mutex);
  if (handle == nullptr || handle == cudaStreamLegacy) {
    auto& legacy = world().legacy[selected_device];
    if (legacy == nullptr) legacy = std::make_shared<Stream>(selected_device, cudaStreamDefault);
    return legacy;
  }
  const auto it = world().streams.find(handle);
  return it == world().streams.end() ? nullptr : it->second;
}

/// The last record of an event. False where there is no such event.
bool find(cudaEvent_t handle, std::shared_ptr<Record>& record) {
  const std::lock_guard lock(world().mutex);
  const auto it = world().events.find(handle);
  if (it == world().events.end()) return false;
  record = it->second;
  return true;
}

template <typename Handle>
Handle new_handle() {
  static std::atomic<std::uintptr_t> next = 0x1000;  // never used twice, so that a stale one is found out
  return reinterpret_cast<Handle>(next += 16);
}

cudaError_t make_stream(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr) return note(cudaErrorInvalidValue);
  *stream = new_handle<cudaStream_t>();
  const std::lock_guard lock(world().mutex);
  world().streams[*stream] = std::make_shared<Stream>(selected_device, flags);
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* event) {
  if (event == nullptr) return note(cudaErrorInvalidValue);
  *event = new_handle<cudaEvent_t>();
  const std::lock_guard lock(world().mutex);
  world().events[*event] = nullptr;
  return cudaSuccess;
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void give_up(const char* format, ...) {
  std::fputs("fake CUDA: ", stderr);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputs("\n", stderr);
  std::abort();
}

void keep_waiting(double since, const char* what) {
  if (now() - since > patience) give_up("%s has not finished for %g s: a deadlock", what, patience.load());
  std::this_thread::sleep_for(std::chrono::microseconds(10));
}

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

void enqueue(cudaStream_t stream, Work work) {
  const auto s = find(stream);
  if (s == nullptr) give_up("work for a stream that does not exist");
  s->add(std::move(work));
}

bool breaks_a_capture() {
  if (capture_mode == cudaStreamCaptureModeRelaxed) return false;
  bool breaks = false;
  const std::lock_guard lock(world().mutex);
  for (const auto& [handle, s] : world().streams) {
    const bool of_this_thread = s->captured_by == std::this_thread::get_id();
    const bool of_all = s->mode == cudaStreamCaptureModeGlobal && capture_mode == cudaStreamCaptureModeGlobal;
    if (s->mode == cudaStreamCaptureModeRelaxed || !(of_this_thread || of_all)) continue;
    breaks = s->capture_is_broken = true;
  }
  if (breaks) note(cudaErrorStreamCaptureUnsupported);
  return breaks;
}

void set_device_count(int devices) { device_count = devices; }
void set_patience(double seconds) { patience = seconds; }

void set_capturing(cudaStream_t stream, bool capturing) {
  const auto s = find(stream);
  if (s == nullptr) give_up("set_capturing of a stream that does not exist");
  s->capturing = capturing;
}

Live live() {
  Live all;
  count_allocations(all);
  const std::lock_guard lock(world().mutex);
  all.streams = world().streams.size();
  all.events = world().events.size();
  return all;
}

}  // namespace laconic::fake

using namespace laconic::fake;  // NOLINT(google-build-using-namespace): the functions of a C API

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count;
  return note(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = selected_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count) return note(cudaErrorInvalidDevice);
  selected_device = device;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return note(cudaErrorInvalidValue);
  std::swap(*mode, capture_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const auto s = find(stream);
  if (s == nullptr || stream == nullptr || s->capturing) return note(cudaErrorInvalidValue);
  const std::lock_guard lock(world().mutex);
  s->capturing = true;
  s->capture_is_broken = false;
  s->mode = mode;
  s->captured_by = std::this_thread::get_id();
  return cudaSuccess;
}

/// There are no graphs.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const auto s = find(stream);
  if (s == nullptr || !s->capturing) return note(cudaErrorInvalidValue);
  if (graph != nullptr) *graph = nullptr;
  const std::lock_guard lock(world().mutex);
  s->capturing = false;
  s->mode = cudaStreamCaptureModeRelaxed;
  s->captured_by = {};
  return note(s->capture_is_broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
}

cudaError_t cudaDeviceSynchronize() {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  std::vector<std::shared_ptr<Stream>> all{find(cudaStream_t{nullptr}), find(cudaStreamPerThread)};
  {
    const std::lock_guard lock(world().mutex);
    for (const auto& [handle, stream] : world().streams) {
      if (stream->device() == selected_device) all.push_back(stream);
    }
  }
  for (const auto& stream : all) stream->drain();
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    default:
      return "an error that the fake CUDA has no name for";
  }
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return make_stream(stream, flags); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return make_stream(stream, flags);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  const auto s = find(stream);
  if (s == nullptr) return note(cudaErrorInvalidResourceHandle);
  *flags = s->flags();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto s = find(stream);
  if (s == nullptr || stream == nullptr) return note(cudaErrorInvalidResourceHandle);
  s->drain();
  const std::lock_guard lock(world().mutex);
  world().streams.erase(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  const auto s = find(stream);
  if (s == nullptr) return note(cudaErrorInvalidResourceHandle);
  if (s->capturing) return note(cudaErrorStreamCaptureUnsupported);
  s->drain();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  const auto s = find(stream);
  if (s == nullptr) return note(cudaErrorInvalidResourceHandle);
  if (s->capturing) return note(cudaErrorStreamCaptureUnsupported);
  return note(s->advance() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  std::shared_ptr<Record> record;
  if (find(stream) == nullptr || !find(event, record)) return note(cudaErrorInvalidResourceHandle);
  if (record != nullptr) enqueue(stream, [record] { return record->test(); });
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const auto s = find(stream);
  if (s == nullptr) return note(cudaErrorInvalidResourceHandle);
  *status = s->capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  if (find(stream) == nullptr) return note(cudaErrorInvalidResourceHandle);
  enqueue(stream, [=] {
    function(argument);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_event(event); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return make_event(event); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(world().mutex);
  return note(world().events.erase(event) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  std::shared_ptr<Record> before;
  const auto s = find(stream);
  if (s == nullptr || !find(event, before)) return note(cudaErrorInvalidResourceHandle);
  const auto record = std::make_shared<Record>(s);
  s->add([done = std::weak_ptr(record)] {
    if (const auto r = done.lock()) r->done = true;
    return true;
  });
  const std::lock_guard lock(world().mutex);
  world().events[event] = record;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  std::shared_ptr<Record> record;
  if (!find(event, record)) return note(cudaErrorInvalidResourceHandle);
  return note(record == nullptr || record->test() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  std::shared_ptr<Record> record;
  if (!find(event, record)) return note(cudaErrorInvalidResourceHandle);
  const double since = now();
  while (record != nullptr && !record->test()) keep_waiting(since, "an event");
  return cudaSuccess;
}
