// A program of somebody's that sums gradients with NCCL and knows nothing of Laconic: each rank is a thread with a GPU.
// Prints what is wrong, or "all as they should be". Arguments: ranks, the error that results may have.
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>

#include "nccl_array.h"

namespace {

int calls = 0;

struct Rank {
  int rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
  double tolerance;
  ncclComm_t other = nullptr;  ///< of the same ranks

  [[nodiscard]] std::vector<float> mine(std::size_t n) const { return values_of(rank, n); }
  void check(const char* what, ncclResult_t status, const Array& y, std::size_t n,
             const std::function<double(std::size_t)>& expected, double rounding = 0) const {
    must(status == ncclSuccess, std::string(what) + " returned " + std::to_string(status));
    const std::vector<float> got = y.contents();
    for (std::size_t i = 0; i < n; ++i) {
      const double off = std::abs(got[i] - expected(i));
      if (off <= tolerance + rounding + 1e-6 * std::abs(expected(i))) continue;
      must(false, std::string(what) + ": element " + std::to_string(i) + " is off by " + std::to_string(off));
      break;
    }
    const std::lock_guard lock(mutex);
    ++calls;
  }
  [[nodiscard]] double sum(std::size_t i) const {
    double s = 0;
    for (int r = 0; r < ranks; ++r) s += value(r, i);
    return s;
  }
};

void everything(const Rank& me) {
  const auto n = static_cast<std::size_t>(me.ranks);
  const auto sum = [&](std::size_t i) { return me.sum(i); };
  const Array x(me.mine(count), me.stream), y(std::vector<float>(count), me.stream);
  me.check("allreduce", ncclAllReduce(x.at(0), y.at(0), count, ncclFloat32, ncclSum, me.comm, me.stream), y, count,
           sum);
  me.check(
      "average", ncclAllReduce(x.at(0), y.at(0), count, ncclFloat32, ncclAvg, me.comm, me.stream), y, count,
      [&](std::size_t i) { return me.sum(i) / me.ranks; }, 1e-6);  // NCCL rounds each operand's share
  me.check("maximum", ncclAllReduce(x.at(0), y.at(0), count, ncclFloat32, ncclMax, me.comm, me.stream), y, count,
           [&](std::size_t i) { return value(me.ranks - 1, i); });
  const Array z(me.mine(count), me.stream);
  me.check("in place", ncclAllReduce(z.at(0), z.at(0), count, ncclFloat32, ncclSum, me.comm, me.stream), z, count, sum);
  me.check("reduce", ncclReduce(x.at(0), y.at(0), count, ncclFloat32, ncclSum, 0, me.comm, me.stream), y,
           me.rank == 0 ? count : 0, sum);
  me.check("broadcast", ncclBroadcast(x.at(0), y.at(0), count, ncclFloat32, 1, me.comm, me.stream), y, count,
           [](std::size_t i) { return value(1, i); });

  const std::size_t share = count / n;
  const Array all(std::vector<float>(share * n), me.stream);
  const auto gathered = [&](std::size_t i) { return value(static_cast<int>(i / share), i % share); };
  me.check("allgather", ncclAllGather(x.at(0), all.at(0), share, ncclFloat32, me.comm, me.stream), all, share * n,
           gathered);
  std::vector<float> placed(share * n);
  for (std::size_t i = 0; i < share; ++i) placed[static_cast<std::size_t>(me.rank) * share + i] = value(me.rank, i);
  const Array there(placed, me.stream);
  const std::size_t own = static_cast<std::size_t>(me.rank) * share;
  me.check("allgather in place", ncclAllGather(there.at(own), there.at(0), share, ncclFloat32, me.comm, me.stream),
           there, share * n, gathered);
  const Array part(std::vector<float>(share), me.stream);
  me.check("reduce_scatter", ncclReduceScatter(x.at(0), part.at(0), share, ncclFloat32, ncclSum, me.comm, me.stream),
           part, share, [&](std::size_t i) { return me.sum(own + i); });
  const Array w(me.mine(share * n), me.stream);
  const ncclResult_t status = ncclReduceScatter(w.at(0), w.at(own), share, ncclFloat32, ncclSum, me.comm, me.stream);
  const std::vector<float> scattered = w.contents();
  const Array taken({scattered.begin() + static_cast<std::ptrdiff_t>(own),
                     scattered.begin() + static_cast<std::ptrdiff_t>(own + share)},
                    me.stream);
  me.check("reduce_scatter in place", status, taken, share, [&](std::size_t i) { return me.sum(own + i); });
}

/// A group, as PyTorch has around every call, and what stays NCCL's.
void groups_and_others(const Rank& me) {
  const Array x(me.mine(count), me.stream), y(std::vector<float>(count), me.stream);
  const Array z(std::vector<float>(count), me.stream);
  ncclGroupStart();
  ncclAllReduce(x.at(0), y.at(0), count, ncclFloat32, ncclSum, me.comm, me.stream);
  ncclAllReduce(x.at(0), z.at(0), count, ncclFloat32, ncclMin, me.comm, me.stream);
  const ncclResult_t status = ncclGroupEnd();
  me.check("a group's sum", status, y, count, [&](std::size_t i) { return me.sum(i); });
  me.check("a group's minimum", status, z, count, [](std::size_t i) { return value(0, i); });
  me.check("a short sum", ncclAllReduce(x.at(0), y.at(0), 10, ncclFloat32, ncclSum, me.comm, me.stream), y, 10,
           [&](std::size_t i) { return me.sum(i); });
  me.check("a product", ncclAllReduce(x.at(0), y.at(0), 10, ncclFloat32, ncclProd, me.comm, me.stream), y, 10,
           [&](std::size_t i) {
             double p = 1;
             for (int r = 0; r < me.ranks; ++r) p *= value(r, i);
             return p;
           });
}

/// On a stream that is captured into a graph (of which the fake makes none, but does the work), alone and in a group
/// with a call that is not: NCCL's own, exact. Only then does the capture stay valid.
void captured(const Rank& me) {
  cudaStream_t into_graph = nullptr;
  cudaStreamCreateWithFlags(&into_graph, cudaStreamNonBlocking);
  const Array x(me.mine(count), me.stream), y(std::vector<float>(count), me.stream);
  const Array z(std::vector<float>(count), into_graph), w(std::vector<float>(count), into_graph);
  cudaStreamBeginCapture(into_graph, cudaStreamCaptureModeThreadLocal);
  ncclResult_t status = ncclAllReduce(x.at(0), z.at(0), count, ncclFloat32, ncclSum, me.comm, into_graph);
  ncclGroupStart();
  const ncclResult_t in_group = ncclAllReduce(x.at(0), w.at(0), count, ncclFloat32, ncclSum, me.comm, into_graph);
  const ncclResult_t beside = ncclAllReduce(x.at(0), y.at(0), count, ncclFloat32, ncclSum, me.other, me.stream);
  const ncclResult_t end = ncclGroupEnd();
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(into_graph, &graph) == cudaSuccess, "a capture was made invalid");
  for (const ncclResult_t r : {in_group, beside, end}) status = status == ncclSuccess ? r : status;
  Rank exact = me;
  exact.tolerance = 0;
  const auto sum = [&](std::size_t i) { return me.sum(i); };
  exact.check("a captured sum", status, z, count, sum);
  exact.check("a captured sum in a group", status, w, count, sum);
  me.check("a sum beside a captured one", status, y, count, sum);
  cudaStreamDestroy(into_graph);
}

/// A communicator that does not block, split off: calls that are served on it, some that are not, and both in a group.
void without_blocking(const Rank& me) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  must(settled(ncclCommSplit(me.comm, 0, me.rank, &comm, &config), me.comm) == ncclSuccess, "ncclCommSplit failed");
  const Array x(me.mine(count), me.stream), y(std::vector<float>(count), me.stream), z(me.mine(10), me.stream);
  const auto sum = [&](std::size_t i) { return me.sum(i); };
  const auto call = [&](const Array& to, std::size_t n) {
    return ncclAllReduce(x.at(0), to.at(0), n, ncclFloat32, ncclSum, comm, me.stream);
  };
  me.check("a sum without blocking", settled(call(y, count), comm), y, count, sum);
  me.check("a short one", settled(call(y, 10), comm), y, 10, sum);
  ncclGroupStart();
  const ncclResult_t first = call(y, count), second = call(z, 10), end = ncclGroupEnd();
  must(first == ncclSuccess || first == ncclInProgress, "a call in a group failed");
  must(second == ncclSuccess || second == ncclInProgress, "a short call in a group failed");
  me.check("a group's sum without blocking", settled(end, comm), y, count, sum);
  me.check("a group's short one", ncclSuccess, z, 10, sum);
  must(settled(ncclCommFinalize(comm), comm) == ncclSuccess, "ncclCommFinalize failed");
  must(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy failed");
}

/// The same calls on two communicators: in a group, in one of another order unless that is the streams', and in none.
void mixed_groups(const Rank& me, cudaStream_t first, cudaStream_t second, bool in_order) {
  const Array x(me.mine(count), me.stream), y(std::vector<float>(count), first);
  const Array z(std::vector<float>(count), second);
  ncclResult_t status = ncclSuccess;
  const auto call = [&](const Array& to, ncclComm_t comm, cudaStream_t stream) {
    const ncclResult_t its = ncclAllReduce(x.at(0), to.at(0), count, ncclFloat32, ncclSum, comm, stream);
    if (its != ncclSuccess) status = its;
  };
  const bool grouped = me.rank % 3 != 2, turned = me.rank % 3 == 1 && !in_order;
  if (grouped) ncclGroupStart();
  if (!turned) call(y, me.comm, first);
  call(z, me.other, second);
  if (turned) call(y, me.comm, first);
  if (grouped && ncclGroupEnd() != ncclSuccess) status = ncclInternalError;
  me.check("a sum beside another one", status, y, count, [&](std::size_t i) { return me.sum(i); });
  me.check("the other one", status, z, count, [&](std::size_t i) { return me.sum(i); });
}

/// On streams side by side, which stream 0 and one that does not block are, too, and on one.
void mixed_groups(const Rank& me) {
  cudaStream_t beside = nullptr;
  cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
  mixed_groups(me, me.stream, beside, false);
  mixed_groups(me, nullptr, beside, false);
  mixed_groups(me, me.stream, me.stream, true);
  cudaStreamDestroy(beside);
}

/// Several streams of one communicator in a group: its calls begin after what any of them has been given, and what
/// comes on any of them after the group comes after all of its calls.
void streams_of_a_group(const Rank& me) {
  cudaStream_t beside = nullptr;
  cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
  const std::vector<float> zeros(count), mine = me.mine(count);
  const auto sum = [&](std::size_t i) { return me.sum(i); };
  const int next = (me.rank + 1) % me.ranks, last = (me.rank + me.ranks - 1) % me.ranks;
  const std::function<ncclResult_t(const Array&, const Array&)> others[] = {
      [&](const Array& from, const Array& to) {
        return ncclAllReduce(from.at(0), to.at(0), count, ncclFloat32, ncclSum, me.comm, beside);
      },
      [&](const Array& from, const Array& to) {  // too short to be served
        return ncclAllReduce(from.at(0), to.at(0), 10, ncclFloat32, ncclSum, me.comm, beside);
      },
      [&](const Array& from, const Array& to) {
        ncclSend(from.at(0), count, ncclFloat32, next, me.comm, beside);
        return ncclRecv(to.at(0), count, ncclFloat32, last, me.comm, beside);
      }};
  const std::function<double(std::size_t)> expected[] = {sum, [&](std::size_t i) { return i < 10 ? me.sum(i) : 0; },
                                                         [&](std::size_t i) { return value(last, i); }};
  for (std::size_t k = 0; k < std::size(others); ++k) {
    const Array x(zeros, beside), y(zeros, me.stream), z(zeros, me.stream), w(zeros, me.stream);
    x.fill(mine, beside);
    z.fill(mine, me.stream);
    ncclGroupStart();
    ncclAllReduce(x.at(0), y.at(0), count, ncclFloat32, ncclSum, me.comm, me.stream);
    others[k](z, w);
    const ncclResult_t status = ncclGroupEnd();
    me.check("the other stream's", status, w, count, expected[k]);
    me.check("one stream's sum", status, y, count, sum);
  }
  cudaStreamDestroy(beside);
}

/// One thread with all the GPUs, as NCCL's own examples have it: only within a group can that work.
void one_thread(const std::vector<ncclComm_t>& comms, double tolerance) {
  const int ranks = static_cast<int>(comms.size());
  std::vector<cudaStream_t> streams(comms.size());
  std::vector<std::unique_ptr<Array>> arrays;
  for (int r = 0; r < ranks; ++r) {
    cudaSetDevice(r);
    cudaStream_t& stream = streams[static_cast<std::size_t>(r)];
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    arrays.push_back(std::make_unique<Array>(Rank{r, ranks, nullptr, stream, 0}.mine(count), stream));
  }
  ncclGroupStart();
  for (std::size_t r = 0; r < comms.size(); ++r) {
    float* const x = arrays[r]->at(0);
    ncclAllReduce(x, x, count, ncclFloat32, ncclSum, comms[r], streams[r]);
  }
  const ncclResult_t status = ncclGroupEnd();
  for (bool busy = true; busy;) {  // the fake's streams run only when they are asked
    busy = false;
    for (const cudaStream_t stream : streams) busy = cudaStreamQuery(stream) == cudaErrorNotReady || busy;
  }
  for (int r = 0; r < ranks; ++r) {
    const auto k = static_cast<std::size_t>(r);
    const Rank me{r, ranks, comms[k], streams[k], tolerance};
    me.check("one thread's sum", status, *arrays[k], count, [&](std::size_t i) { return me.sum(i); });
  }
  arrays.clear();
  for (const cudaStream_t stream : streams) cudaStreamDestroy(stream);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const double tolerance = argc > 2 ? std::atof(argv[2]) : 0;
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(ranks)), others(comms);
  must(ncclCommInitAll(comms.data(), ranks, nullptr) == ncclSuccess, "ncclCommInitAll failed");
  must(ncclCommInitAll(others.data(), ranks, nullptr) == ncclSuccess, "ncclCommInitAll failed");
  one_thread(comms, tolerance);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const ncclComm_t comm = comms[static_cast<std::size_t>(r)];
      cudaSetDevice(r);
      cudaStream_t stream = nullptr;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      const Rank me{r, ranks, comm, stream, tolerance, others[static_cast<std::size_t>(r)]};
      everything(me);
      groups_and_others(me);
      mixed_groups(me);
      streams_of_a_group(me);
      captured(me);
      without_blocking(me);
      cudaStreamDestroy(stream);
      const auto start = std::chrono::steady_clock::now();
      ncclGroupStart();
      ncclCommFinalize(me.other);
      ncclGroupEnd();
      must(std::chrono::steady_clock::now() - start < std::chrono::seconds(30), "finalizing in a group took too long");
      ncclCommDestroy(me.other);
      ncclCommFinalize(comm);
      ncclCommDestroy(comm);
    });
  }
  for (std::thread& t : threads) t.join();
  if (wrong == 0) std::printf("%d calls, all as they should be\n", calls);
  return wrong == 0 ? 0 : 1;
}
