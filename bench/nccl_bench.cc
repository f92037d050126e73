// NCCL's collectives beside Laconic's over NCCL, in turn, on arrays in device memory. One process a rank; RANK and
// WORLD_SIZE tell which (as tools/cluster gpu and torchrun set them), and all of them see ID_FILE, which must not
// exist.
//   nccl_bench ID_FILE BOUND REPETITIONS field.f32 MIB,... [field.f32 MIB,...]...      0.0625: 64 KiB
// Rank 0 prints one line of JSON a field, size and collective: medians of the slowest rank's times, how many times
// fewer bytes, how many elements of its result are off by more than the bound (and half a unit in the last place), what
// rank 0 spent its last call on, and its log: why calls went as they did. LACONIC_BENCH_MODES=auto,compressed measures
// both, a line each.
#include <laconic/laconic_nccl.h>
#include <unistd.h>

#include "device_bench.h"

namespace {

using bench::Arrays;
using bench::Case;
using bench::give_up;
using bench::must;
using bench::Values;
using bench::World;

void must(ncclResult_t r) {
  if (r != ncclSuccess) give_up(ncclGetErrorString(r));
}

int variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  if (value == nullptr) give_up(std::string(name) + " is not set");
  return std::atoi(value);
}

/// Rank 0 makes it; the others wait for the file.
ncclUniqueId agree_on_id(const std::string& file, int rank) {
  ncclUniqueId id;
  if (rank == 0) {
    must(ncclGetUniqueId(&id));
    std::ofstream(file + ".part", std::ios::binary).write(id.internal, sizeof id.internal);
    if (std::rename((file + ".part").c_str(), file.c_str()) != 0) give_up("cannot write " + file);
    return id;
  }
  for (int tries = 0; tries < 600; ++tries) {
    std::ifstream in(file, std::ios::binary);
    if (in.read(id.internal, sizeof id.internal)) return id;
    ::usleep(100000);
  }
  give_up("rank 0 has not written " + file);
}

/// One number of each rank, by way of `word` in device memory.
double over_ranks(ncclRedOp_t op, double mine, float* word, ncclComm_t comm, cudaStream_t stream) {
  auto number = static_cast<float>(mine);
  must(cudaMemcpyAsync(word, &number, sizeof number, cudaMemcpyHostToDevice, stream));
  must(ncclAllReduce(word, word, 1, ncclFloat32, op, comm, stream));
  must(cudaMemcpyAsync(&number, word, sizeof number, cudaMemcpyDeviceToHost, stream));
  must(cudaStreamSynchronize(stream));
  return number;
}

std::vector<Case> cases(const World& w, ncclComm_t comm, const Arrays& a, const Values& values) {
  const cudaStream_t s = w.stream;
  const int root = w.root();
  const auto sum = [&values](std::size_t i) { return values.sum(i); };
  return {
      {"allreduce", [=] { must(ncclAllReduce(a.x, a.y, a.count, ncclFloat32, ncclSum, comm, s)); },
       [=](const laconic_options* o) {
         return laconic_nccl_allreduce(a.x, a.y, a.count, ncclFloat32, ncclSum, comm, s, o);
       },
       a.count, sum},
      {"reduce_scatter", [=] { must(ncclReduceScatter(a.x, a.y, a.share, ncclFloat32, ncclSum, comm, s)); },
       [=](const laconic_options* o) {
         return laconic_nccl_reduce_scatter(a.x, a.y, a.share, ncclFloat32, ncclSum, comm, s, o);
       },
       a.share, sum},
      {"allgather", [=] { must(ncclAllGather(a.x, a.y, a.share, ncclFloat32, comm, s)); },
       [=](const laconic_options* o) { return laconic_nccl_allgather(a.x, a.y, a.share, ncclFloat32, comm, s, o); },
       a.count, [&values](std::size_t i) { return values.gathered(i); }},
      {"broadcast", [=] { must(ncclBroadcast(a.x, a.y, a.count, ncclFloat32, root, comm, s)); },
       [=](const laconic_options* o) {
         return laconic_nccl_broadcast(a.x, a.y, a.count, ncclFloat32, root, comm, s, o);
       },
       a.count, [&values, root](std::size_t i) { return static_cast<double>(values.of(root, i)); }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) give_up("want ID_FILE BOUND REPETITIONS field.f32 MIB,...");
  const int rank = variable("RANK");
  const int ranks = variable("WORLD_SIZE");
  int devices = 0;
  must(cudaGetDeviceCount(&devices));
  must(cudaSetDevice(rank % std::max(devices, 1)));
  const ncclUniqueId id = agree_on_id(argv[1], rank);
  ncclComm_t comm = nullptr;
  must(ncclCommInitRank(&comm, ranks, id, rank));
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    const bench::Array word(1);
    bench::Log log(rank);
    const auto last = [&] {
      laconic_stats found{};
      found.struct_size = sizeof found;
      must(laconic_nccl_last(comm, &found));
      return found;
    };
    const auto over = [&](ncclRedOp_t op) {
      return [&, op](double mine) { return over_ranks(op, mine, word.data, comm, stream); };
    };
    const World w{"nccl",        rank, ranks, std::max(std::atoi(argv[3]), 1), stream, over(ncclMax),
                  over(ncclSum), last, log};
    bench::measure_all(w, argv[2], {argv + 4, argv + argc},
                       [&](const Arrays& a, const Values& values) { return cases(w, comm, a, values); });
  }
  must(laconic_nccl_release(comm));
  must(ncclCommDestroy(comm));
  return 0;
}
