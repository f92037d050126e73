// A program of somebody's that names its communicators. What is called data... is compressed, what is called tensor...
// or nothing at all is NCCL's (nccl_names.toml). Each rank is a thread with a GPU. Prints what is wrong, or "all as
// they should be".
#include <barrier>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "nccl_array.h"
#include "support/fake_nccl.h"

namespace {

constexpr int ranks = 3;
constexpr double bound = 1e-2;
constexpr bool compressed = true, plain = false;

std::vector<ncclUniqueId> ids(32);
std::barrier all_ranks(ranks);

ncclConfig_t config_of(const char* name, int blocking = 1) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.commName = name;
  config.blocking = blocking;
  return config;
}

/// The sum of so many ranks' values: within the bound and not exact, or exact as NCCL's own is.
void check(const std::string& what, const Array& y, int n, bool way) {
  const std::vector<float> got = y.contents();
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    double sum = 0;
    for (int r = 0; r < n; ++r) sum += value(r, i);
    most = std::fmax(most, std::fabs(got[i] - sum));
  }
  must(way == compressed ? most <= bound + 1e-5 && most > bound / 100 : most < 1e-5,
       what + " is off by " + std::to_string(most));
}

struct Rank {
  int rank;
  cudaStream_t stream;
  std::size_t made = 0;

  /// Of all ranks.
  ncclComm_t communicator(ncclConfig_t* config) {
    ncclComm_t comm = nullptr;
    const ncclResult_t status = ncclCommInitRankConfig(&comm, ranks, ids[made++], rank, config);
    must(settled(status, comm) == ncclSuccess, "ncclCommInitRankConfig failed");
    return comm;
  }
  ncclComm_t communicator(const char* name, int blocking = 1) {
    ncclConfig_t config = config_of(name, blocking);
    return communicator(&config);
  }
  [[nodiscard]] ncclComm_t split(ncclComm_t parent, ncclConfig_t* config, int color = 0) const {
    ncclComm_t comm = nullptr;
    must(settled(ncclCommSplit(parent, color, rank, &comm, config), parent) == ncclSuccess, "ncclCommSplit failed");
    return comm;
  }
  ncclResult_t call(const Array& x, ncclComm_t comm, std::size_t n = count) const {
    return settled(ncclAllReduce(x.at(0), x.at(0), n, ncclFloat32, ncclSum, comm, stream), comm);
  }
  /// Twice: the second time the ranks know already.
  void sums_over(ncclComm_t comm, bool way, const std::string& what, int n = ranks) const {
    for (int i = 0; i < 2; ++i) {
      const Array x(values_of(rank, count), stream);
      must(call(x, comm) == ncclSuccess, what + " failed");
      check(what, x, n, way);
    }
  }
  void last_sums_over(ncclComm_t comm, bool way, const std::string& what, int n = ranks) const {
    sums_over(comm, way, what, n);
    must(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy failed");
  }
};

/// All ranks have come here, and communicators are neither made nor ended meanwhile.
std::size_t communicators() {
  all_ranks.arrive_and_wait();
  const std::size_t live = laconic::fake::live_communicators();
  all_ranks.arrive_and_wait();
  return live;
}

void names_decide(Rank& me) {
  const std::string long_name = std::string(700, 'x') + "end";
  for (const auto& [name, way] : {std::pair("data parallel", compressed), std::pair("tensor parallel", plain),
                                  std::pair("pipeline", plain), std::pair(long_name.c_str(), compressed)}) {
    const ncclComm_t comm = me.communicator(name);
    const std::size_t before = communicators();
    const Array x(values_of(me.rank, 10), me.stream);
    must(me.call(x, comm, 10) == ncclSuccess, "a short sum failed");
    check("a short sum", x, ranks, plain);
    must(communicators() == before, "ranks met for a short sum");
    me.sums_over(comm, way, name);
    const std::size_t after = communicators();
    if (std::string(name).starts_with("tensor")) must(after == before, "something was kept for what is off");
    must(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy failed");
  }
}

void rank_0_decides(Rank& me) {
  me.last_sums_over(me.communicator(me.rank == 0 ? "data" : "tensor"), compressed, "data on rank 0");
  me.last_sums_over(me.communicator(me.rank == 0 ? "tensor" : "data"), plain, "tensor on rank 0");
  me.last_sums_over(me.communicator(me.rank == 0 ? nullptr : "data"), plain, "no name on rank 0");
}

void without_names(Rank& me) {
  me.last_sums_over(me.communicator(static_cast<ncclConfig_t*>(nullptr)), plain, "no config");
  ncclConfig_t older = config_of(reinterpret_cast<const char*>(1));  // what lies behind a config without that member
  older.size = offsetof(ncclConfig_t, commName);
  me.last_sums_over(me.communicator(&older), plain, "an older config");
}

void by_several_roots(Rank& me) {
  ncclConfig_t config = config_of("data");
  ncclComm_t comm = nullptr;
  must(ncclCommInitRankScalable(&comm, ranks, me.rank, 1, &ids[me.made++], &config) == ncclSuccess,
       "ncclCommInitRankScalable failed");
  me.last_sums_over(comm, compressed, "by several roots");
}

void of_what_is_split_off(Rank& me, int blocking) {
  const ncclComm_t parent = me.communicator("data", blocking);
  me.sums_over(parent, compressed, "their parent");
  ncclConfig_t tensor = config_of("tensor"), unnamed = config_of(nullptr);
  me.last_sums_over(me.split(parent, nullptr), compressed, "its parent's name");
  me.last_sums_over(me.split(parent, &tensor), plain, "a name of its own");
  me.last_sums_over(me.split(parent, &unnamed), plain, "a config without a name");
  const bool out = me.rank == ranks - 1;
  const ncclComm_t fewer = me.split(parent, nullptr, out ? NCCL_SPLIT_NOCOLOR : 0);
  must(out == (fewer == nullptr), "a rank that is left out has a communicator");
  if (!out) me.last_sums_over(fewer, compressed, "its parent's name, without the last rank", ranks - 1);
  int last = ranks - 1;
  ncclComm_t shrunk = nullptr;
  if (!out) {
    must(settled(ncclCommShrink(parent, &last, 1, &shrunk, nullptr, NCCL_SHRINK_DEFAULT), parent) == ncclSuccess,
         "ncclCommShrink failed");
    me.last_sums_over(shrunk, compressed, "what was shrunk", ranks - 1);
  }
  must(ncclCommDestroy(parent) == ncclSuccess, "ncclCommDestroy failed");
}

void split_in_a_group(Rank& me, int blocking) {
  const ncclComm_t data = me.communicator("data", blocking), tensor = me.communicator("tensor", blocking);
  ncclComm_t first = nullptr, second = nullptr;
  ncclGroupStart();
  ncclCommSplit(data, 0, me.rank, &first, nullptr);
  ncclCommSplit(tensor, 0, me.rank, &second, nullptr);
  const ncclResult_t end = ncclGroupEnd();
  must(settled(end, data) == ncclSuccess && settled(end, tensor) == ncclSuccess, "ncclCommSplit in a group failed");
  me.last_sums_over(first, compressed, "split off data in a group");
  me.last_sums_over(second, plain, "split off tensor in a group");
  for (const ncclComm_t comm : {data, tensor}) ncclCommDestroy(comm);
}

/// Ranks that group their calls, and one that does not; then, when what is NCCL's begins with the group, all of them.
void in_groups(Rank& me, int blocking) {
  const ncclComm_t tensor = me.communicator("tensor", blocking), data = me.communicator("data", blocking);
  for (int i = 0; i < 2; ++i) {
    const Array x(values_of(me.rank, count), me.stream), y(values_of(me.rank, count), me.stream);
    const Array z(values_of(me.rank, count), me.stream);
    const bool grouped = me.rank != 1 || i > 0;
    if (grouped) ncclGroupStart();
    const auto call = [&](const Array& a, ncclComm_t comm) {
      const ncclResult_t status = ncclAllReduce(a.at(0), a.at(0), count, ncclFloat32, ncclSum, comm, me.stream);
      must(grouped || settled(status, comm) == ncclSuccess, "a call beside a group failed");
    };
    call(x, tensor);
    call(y, data);
    call(z, tensor);
    const ncclResult_t end = grouped ? ncclGroupEnd() : ncclSuccess;
    must(settled(end, tensor) == ncclSuccess && settled(end, data) == ncclSuccess, "a group failed");
    check("the first of a group", x, ranks, plain);
    check("the second of a group", y, ranks, compressed);
    check("the third of a group", z, ranks, plain);
  }
  for (const ncclComm_t comm : {tensor, data}) ncclCommDestroy(comm);
}

/// What is captured does not meet.
void captured(Rank& me) {
  const ncclComm_t data = me.communicator("data");
  const Array x(values_of(me.rank, count), me.stream);
  cudaStreamBeginCapture(me.stream, cudaStreamCaptureModeThreadLocal);
  must(me.call(x, data) == ncclSuccess, "a captured call failed");
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(me.stream, &graph) == cudaSuccess, "a capture was made invalid");
  check("a captured sum", x, ranks, plain);
  me.last_sums_over(data, compressed, "after a captured one");
}

void play(int rank) {
  cudaSetDevice(rank);
  Rank me{rank, nullptr};
  cudaStreamCreateWithFlags(&me.stream, cudaStreamNonBlocking);
  names_decide(me);
  rank_0_decides(me);
  without_names(me);
  by_several_roots(me);
  for (const int blocking : {1, 0}) {
    of_what_is_split_off(me, blocking);
    split_in_a_group(me, blocking);
    in_groups(me, blocking);
  }
  captured(me);
  cudaStreamDestroy(me.stream);
}

}  // namespace

int main() {
  for (ncclUniqueId& id : ids) ncclGetUniqueId(&id);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(play, r);
  for (std::thread& t : threads) t.join();
  must(laconic::fake::live_communicators() == 0, "communicators are left");
  if (wrong == 0) std::printf("all as they should be\n");
  return wrong == 0 ? 0 : 1;
}
