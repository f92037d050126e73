#include "preload/nccl/deferred.h"

#include <algorithm>
#include <thread>

#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"
#include "gpu/device_memory.h"
#include "transport/nccl/cuda.h"

namespace laconic::preload {
namespace {

/// Calls that are made one after the other, in the program's order.
struct Sequence {
  std::vector<const Deferred*> calls;
  int device = 0;
  ncclResult_t result = ncclSuccess;
};

bool is_legacy(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

/// Whether legacy stream 0 and this one, of the same device, wait for each other.
bool waits_for_legacy(cudaStream_t stream) {
  unsigned flags = cudaStreamDefault;
  if (cudaStreamGetFlags(stream, &flags) != cudaSuccess) cudaGetLastError();
  return (flags & cudaStreamNonBlocking) == 0;
}

bool are_in_order(cudaStream_t a, cudaStream_t b) {
  return a == b || (is_legacy(a) && waits_for_legacy(b)) || (is_legacy(b) && waits_for_legacy(a));
}

bool belongs_to(const Sequence& sequence, const Deferred& d, int device) {
  return std::ranges::any_of(sequence.calls, [&](const Deferred* c) {
    if (c->comm == d.comm) return true;
    return sequence.device == device && are_in_order(c->stream, d.stream);
  });
}

std::vector<Sequence> sequences_of(const std::vector<Deferred>& calls) {
  std::vector<Sequence> all;
  for (const Deferred& d : calls) {
    Sequence whole{{}, d.device};
    std::erase_if(all, [&](const Sequence& s) {
      if (!belongs_to(s, d, whole.device)) return false;
      whole.calls.insert(whole.calls.end(), s.calls.begin(), s.calls.end());
      return true;
    });
    whole.calls.push_back(&d);
    std::ranges::sort(whole.calls);  // they lie in one vector
    all.push_back(std::move(whole));
  }
  return all;
}

/// work(), which may throw, with the call's device.
ncclResult_t guarded(const Deferred& d, const std::function<void()>& work) {
  try {
    const nccl::OnDevice as(d.device);
    work();
    return ncclSuccess;
  } catch (const Error& e) {
    log(LogLevel::error, e.what());
    return ncclUnhandledCudaError;
  }
}

/// The result of plain calls, once they are launched where their communicator does not block. Still ncclInProgress:
/// another communicator's of their group are not.
ncclResult_t awaited(ncclResult_t result, const Deferred& d) {
  ncclResult_t its = result;
  try {
    while (its == ncclInProgress) {
      const auto ask = [&] { return pncclCommGetAsyncError(d.comm, &its); };
      if (const ncclResult_t asked = d.stop->unless_set(ask); asked != ncclSuccess) return asked;
      std::this_thread::yield();
    }
  } catch (const Error& e) {
    log(LogLevel::error, e.what());
    return ncclRemoteError;
  }
  return its != ncclSuccess ? its : result;
}

ncclResult_t leave_to_nccl(const Deferred& d) {
  const ncclResult_t result = awaited(d.plain(), d);
  // The stream may be another thread's than the program's, which could not wait for it; or other streams are to.
  if (!d.has_beside && d.stream != cudaStreamPerThread) return result;
  return worse(result, guarded(d, [&] { gpu::await(d.stream); }));
}

ncclResult_t make(NcclRuntime& runtime, const Deferred& d, bool alone) {
  const auto done = runtime.serve(d.call, d.rule, d.comm, d.stream, alone);
  return done ? *done : leave_to_nccl(d);
}

void serve(NcclRuntime& runtime, Sequence& s, bool alone) {
  std::vector<ncclComm_t> lost;
  for (const Deferred* const d : s.calls) {
    if (std::ranges::find(lost, d->comm) != lost.end()) continue;
    const ncclResult_t result = d->stop->is_set() ? ncclRemoteError : make(runtime, *d, alone);
    s.result = worse(s.result, result);
    if (result == ncclRemoteError) lost.push_back(d->comm);  // so would its others end, if it is there at all
  }
}

/// On other threads that stream is another one. What it has been given is waited for here.
void await_streams_of_this_thread(const Sequence& s) {
  const auto is_own = [](const Deferred* d) { return d->stream == cudaStreamPerThread; };
  if (std::ranges::none_of(s.calls, is_own)) return;
  const nccl::OnDevice as(s.device);
  gpu::await(cudaStreamPerThread);
}

/// All at once; this thread takes the last ones. What no thread can be had for it makes, too.
void serve_all(NcclRuntime& runtime, std::vector<Sequence>& all) {
  std::vector<Thread> threads;
  threads.reserve(all.size());
  std::vector<Sequence*> left;
  for (Sequence& s : all) {
    if (&s == &all.back()) break;
    try {
      await_streams_of_this_thread(s);
      threads.emplace_back([&runtime, &s] {
        cudaSetDevice(s.device);  // first of all, so that nothing is made on another device for this thread
        serve(runtime, s, false);
      });
    } catch (const std::exception& e) {
      log(LogLevel::warning, std::string("a group's calls are made one after the other: ") + e.what());
      left.push_back(&s);
    }
  }
  const std::vector<const Deferred*>& here = all.back().calls;
  serve(runtime, all.back(), all.size() == 1 && here.size() == 1 && !here.front()->has_beside);
  for (Sequence* const s : left) serve(runtime, *s, false);
}

ncclResult_t make_all(NcclRuntime& runtime, const std::vector<Deferred>& calls) {
  if (calls.empty()) return ncclSuccess;
  std::vector<Sequence> all = sequences_of(calls);
  serve_all(runtime, all);
  ncclResult_t result = ncclSuccess;
  for (const Sequence& s : all) result = worse(result, s.result);
  return result;
}

void note_streams_beside(GroupCalls& group) {
  for (Deferred& d : group.calls) {
    const auto is_beside = [&](const auto& other) { return other.comm == d.comm && other.stream != d.stream; };
    d.has_beside = std::ranges::any_of(group.calls, is_beside) || std::ranges::any_of(group.given, is_beside);
  }
}

/// For each call and each of the others on another stream of its communicator: one waits for what the other has been
/// given.
template <typename Other, typename Order>
ncclResult_t order_streams(const std::vector<Deferred>& calls, const std::vector<Other>& others, Order&& order) {
  ncclResult_t result = ncclSuccess;
  for (const Deferred& d : calls) {
    for (const Other& other : others) {
      if (other.comm != d.comm || other.stream == d.stream) continue;
      result = worse(result, guarded(d, [&] { order(d.stream, other.stream); }));
    }
  }
  return result;
}

}  // namespace

ncclResult_t GroupCalls::make(NcclRuntime& runtime, const std::function<ncclResult_t()>& plain) {
  note_streams_beside(*this);
  const auto before = [](cudaStream_t own, cudaStream_t other) { gpu::let_wait(other, own); };
  const auto after = [](cudaStream_t own, cudaStream_t other) { gpu::let_wait(own, other); };
  ncclResult_t result = order_streams(calls, given, before);
  const ncclResult_t launched = plain();
  result = worse(result, launched);
  for (const Deferred& d : calls) result = worse(result, awaited(launched, d));
  result = worse(result, worse(order_streams(calls, given, after), order_streams(calls, calls, after)));
  return worse(result, make_all(runtime, calls));
}

}  // namespace laconic::preload
