// Collectives on arrays in device memory over an MPI that knows nothing of GPUs: Laconic's, which hand it compressed
// bytes, beside what a program does without: copy to the host's memory (pinned, kept), that MPI's collective, copy
// back.
//   mpiexec -n RANKS staged_bench BOUND REPETITIONS field.f32 MIB,... [field.f32 MIB,...]...      0.0625: 64 KiB
// Rank 0 prints lines as nccl_bench's, with mpi_ms in place of nccl_ms.
#include <laconic/laconic_gpu.h>
#include <laconic/laconic_mpi.h>

#include "device_bench.h"

namespace {

using bench::Arrays;
using bench::Case;
using bench::give_up;
using bench::must;
using bench::Values;
using bench::World;

void must_mpi(int code) {
  if (code != MPI_SUCCESS) give_up("MPI: error " + std::to_string(code));
}

/// Floats in pinned memory of the host. Grows.
class Pinned {
 public:
  Pinned() = default;
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  float* at_least(std::size_t count) {
    if (count > count_) {
      must(cudaFreeHost(data_));
      must(cudaHostAlloc(&data_, count * sizeof(float), cudaHostAllocDefault));
      count_ = count;
    }
    return static_cast<float*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t count_ = 0;
};

/// What a program does that has no Laconic.
class Staging {
 public:
  explicit Staging(cudaStream_t stream) : stream_(stream) {}

  /// Makes work(operand, result), of the host's arrays, of x and y.
  template <class Work>
  void operator()(const float* x, std::size_t operands, float* y, std::size_t results, Work&& work) {
    float* const here = operand_.at_least(std::max<std::size_t>(operands, 1));
    float* const result = result_.at_least(std::max<std::size_t>(results, 1));
    copy(here, x, operands);
    must(cudaStreamSynchronize(stream_));
    must_mpi(work(here, result));
    copy(y, result, results);
  }

 private:
  void copy(float* to, const float* from, std::size_t count) {
    must(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDefault, stream_));
  }

  cudaStream_t stream_;
  Pinned operand_, result_;
};

/// The root's own array stays on its device; the others have nothing to bring.
void broadcast_staged(Staging& stage, const World& w, const Arrays& a) {
  const auto n = static_cast<int>(a.count);
  const bool sends = w.rank == w.root();
  stage(a.x, sends ? a.count : 0, a.y, sends ? 0 : a.count,
        [&](float* s, float* r) { return MPI_Bcast(sends ? s : r, n, MPI_FLOAT, w.root(), MPI_COMM_WORLD); });
}

int broadcast(const World& w, const Arrays& a, laconic_comm* comm, const laconic_options* o) {
  if (w.rank == w.root()) {  // which would hold in x what the others got
    must(cudaMemcpyAsync(a.y, a.x, a.count * sizeof(float), cudaMemcpyDefault, w.stream));
  }
  return laconic_bcast(a.y, a.count, LACONIC_F32, w.root(), comm, o);
}

std::vector<Case> cases(const World& w, Staging& stage, laconic_comm* comm, const Arrays& a, const Values& values) {
  const auto n = static_cast<int>(a.count);
  const auto share = static_cast<int>(a.share);
  const auto sum = [&values](std::size_t i) { return values.sum(i); };
  return {
      {"allreduce",
       [=, &stage] {
         stage(a.x, a.count, a.y, a.count,
               [n](const float* s, float* r) { return MPI_Allreduce(s, r, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
       },
       [=](const laconic_options* o) {
         return laconic_allreduce(a.x, a.y, a.count, LACONIC_F32, LACONIC_SUM, comm, o);
       },
       a.count, sum},
      {"reduce_scatter",
       [=, &stage] {
         stage(a.x, a.count, a.y, a.share, [share](const float* s, float* r) {
           return MPI_Reduce_scatter_block(s, r, share, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
         });
       },
       [=](const laconic_options* o) {
         return laconic_reduce_scatter_block(a.x, a.y, a.share, LACONIC_F32, LACONIC_SUM, comm, o);
       },
       a.share, sum},
      {"allgather",
       [=, &stage] {
         stage(a.x, a.share, a.y, a.count, [share](const float* s, float* r) {
           return MPI_Allgather(s, share, MPI_FLOAT, r, share, MPI_FLOAT, MPI_COMM_WORLD);
         });
       },
       [=](const laconic_options* o) { return laconic_allgather(a.x, a.share, a.y, LACONIC_F32, comm, o); }, a.count,
       [&values](std::size_t i) { return values.gathered(i); }},
      {"broadcast", [=, &stage, &w] { broadcast_staged(stage, w, a); },
       [=, &w](const laconic_options* o) { return broadcast(w, a, comm, o); }, a.count,
       [&values, root = w.root()](std::size_t i) { return static_cast<double>(values.of(root, i)); }},
  };
}

auto over_ranks(MPI_Op op) {
  return [op](double mine) {
    double all = 0;
    must_mpi(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD));
    return all;
  };
}

void run(int rank, int ranks, int repetitions, const char* bound, const std::vector<std::string>& words) {
  int devices = 0;
  must(cudaGetDeviceCount(&devices));
  must(cudaSetDevice(rank % std::max(devices, 1)));
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  bench::Log log(rank);
  laconic_comm* comm = nullptr;
  must(laconic_comm_from_mpi(MPI_COMM_WORLD, &comm));
  must(laconic_comm_use_device(comm, stream));
  const auto last = [&] {
    laconic_stats found{};
    found.struct_size = sizeof found;
    must(laconic_comm_last(comm, &found));
    return found;
  };
  const World w{"mpi", rank, ranks, repetitions, stream, over_ranks(MPI_MAX), over_ranks(MPI_SUM), last, log};
  Staging stage(stream);
  bench::measure_all(w, bound, words,
                     [&](const Arrays& a, const Values& values) { return cases(w, stage, comm, a, values); });
  laconic_comm_free(comm);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  must_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));  // CUDA has threads of its own
  if (argc < 5) give_up("want BOUND REPETITIONS field.f32 MIB,...");
  int rank = 0;
  int ranks = 1;
  must_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  must_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
  run(rank, ranks, std::max(std::atoi(argv[2]), 1), argv[1], {argv + 3, argv + argc});
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
