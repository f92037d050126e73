// A program of somebody's that loses a rank: its last one calls nothing any more. What the others wait in is ended from
// another thread of each, and they go on. Prints what is wrong, or "all as they should be". Argument: how it is ended.
//   begin    ncclCommAbort, in the first call of all
//   abort    ncclCommAbort, in a group of two calls
//   streams  the same, behind a message to the last rank on another stream
//   revoke   ncclCommRevoke, then ncclCommShrink
//   shrink   ncclCommShrink, which ends what is under way
//   launch   ncclCommAbort, while NCCL still connects for a call of its own: of all ranks
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "nccl_array.h"
#include "support/fake_nccl.h"

namespace {

constexpr int ranks = 3;
constexpr float bound = 1e-2F;
using Clock = std::chrono::steady_clock;

ncclComm_t first[ranks];
ncclComm_t second[ranks];

struct Rank {
  int rank;
  cudaStream_t stream;
  cudaStream_t beside = nullptr;  ///< where a group's message is; null: it has none

  /// Of so many ranks: within the bound, and not exact, which it would be if it were NCCL's own.
  void sum_over(ncclComm_t comm, int n, const char* what) const {
    const Array x(values_of(rank, count), stream);
    const ncclResult_t status = ncclAllReduce(x.at(0), x.at(0), count, ncclFloat32, ncclSum, comm, stream);
    must(status == ncclSuccess, std::string(what) + " returned " + std::to_string(status));
    const std::vector<float> got = x.contents();
    double most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int r = 0; r < n; ++r) sum += value(r, i);
      most = std::fmax(most, std::fabs(got[i] - sum));
    }
    must(most <= bound + 1e-5F && most > bound / 100, std::string(what) + " is off by " + std::to_string(most));
  }

  /// A call that fails soon.
  void fail_over(ncclComm_t comm, const char* what) const {
    const Array x(values_of(rank, count), stream), y(values_of(rank, count), stream);
    const auto start = Clock::now();
    ncclGroupStart();
    if (beside != nullptr) ncclSend(x.at(0), count, ncclFloat32, ranks - 1, comm, beside);
    ncclAllReduce(x.at(0), x.at(0), count, ncclFloat32, ncclSum, comm, stream);
    ncclAllReduce(y.at(0), y.at(0), count, ncclFloat32, ncclSum, comm, stream);
    must(ncclGroupEnd() != ncclSuccess, std::string(what) + " did not fail");
    must(Clock::now() - start < std::chrono::seconds(10), std::string(what) + " took longer than it should");
  }

  /// A call that waits for the last rank until end() has been called.
  void wait_until(const std::function<void()>& end, ncclComm_t comm) const {
    std::thread waiting([&] {
      cudaSetDevice(rank);
      fail_over(comm, "the call that waits");
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    end();
    waiting.join();
  }

  [[nodiscard]] ncclComm_t shrunk(ncclComm_t comm, int flags) const {
    int gone = ranks - 1;
    ncclComm_t fewer = nullptr;
    must(ncclCommShrink(comm, &gone, 1, &fewer, nullptr, flags) == ncclSuccess, "ncclCommShrink failed");
    return fewer;
  }

  /// On fewer ranks, while the old communicator fails at once.
  void go_on_with(ncclComm_t fewer, ncclComm_t old) const {
    fail_over(old, "a call on the old communicator");
    for (int i = 0; i < 2; ++i) sum_over(fewer, ranks - 1, "the sum of those that are left");
    ncclCommDestroy(fewer);
    ncclCommDestroy(old);
  }
};

void survive(const Rank& me, const std::string& how) {
  const ncclComm_t comm = first[me.rank];
  if (how == "revoke") {
    me.wait_until([&] { must(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT) == ncclSuccess, "ncclCommRevoke failed"); },
                  comm);
    me.go_on_with(me.shrunk(comm, NCCL_SHRINK_DEFAULT), comm);
  } else if (how == "shrink") {
    ncclComm_t fewer = nullptr;
    me.wait_until([&] { fewer = me.shrunk(comm, NCCL_SHRINK_ABORT); }, comm);
    me.go_on_with(fewer, comm);
  } else {
    me.wait_until([&] { must(ncclCommAbort(comm) == ncclSuccess, "ncclCommAbort failed"); }, comm);
  }
}

/// Of a communicator that does not block: its call that is NCCL's never comes on its stream, so the one that is served
/// is not begun.
void abort_a_launch(const Rank& me) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  const ncclComm_t whole = first[me.rank];
  must(settled(ncclCommSplit(whole, 0, me.rank, &comm, &config), whole) == ncclSuccess, "ncclCommSplit failed");
  laconic::fake::hold_launches(comm);
  std::thread waiting([&] {
    cudaSetDevice(me.rank);
    const Array x(values_of(me.rank, count), me.stream), y(values_of(me.rank, 10), me.stream);
    ncclGroupStart();
    ncclAllReduce(y.at(0), y.at(0), 10, ncclFloat32, ncclSum, comm, me.stream);
    ncclAllReduce(x.at(0), x.at(0), count, ncclFloat32, ncclSum, comm, me.stream);
    const ncclResult_t end = ncclGroupEnd();
    must(end != ncclSuccess && end != ncclInProgress, "a group whose communicator was aborted did not fail");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  must(ncclCommAbort(comm) == ncclSuccess, "ncclCommAbort failed");
  waiting.join();
  ncclCommAbort(whole);
}

void play(int rank, const std::string& how) {
  cudaSetDevice(rank);
  Rank me{rank, nullptr, nullptr};
  cudaStreamCreateWithFlags(&me.stream, cudaStreamNonBlocking);
  if (how != "begin") me.sum_over(first[rank], ranks, "the first sum");
  if (how == "streams") cudaStreamCreateWithFlags(&me.beside, cudaStreamNonBlocking);
  if (how == "launch") {
    abort_a_launch(me);
  } else if (rank != ranks - 1) {
    survive(me, how);
  } else {
    ncclCommAbort(first[rank]);
  }
  if (me.beside != nullptr) cudaStreamDestroy(me.beside);
  me.sum_over(second[rank], ranks, "the sum over a new communicator");
  ncclCommDestroy(second[rank]);
  cudaStreamDestroy(me.stream);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "abort";
  must(ncclCommInitAll(first, ranks, nullptr) == ncclSuccess, "ncclCommInitAll failed");
  must(ncclCommInitAll(second, ranks, nullptr) == ncclSuccess, "ncclCommInitAll failed");
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(play, r, how);
  for (std::thread& t : threads) t.join();
  if (wrong == 0) std::printf("%s: all as they should be\n", how.c_str());
  return wrong == 0 ? 0 : 1;
}
