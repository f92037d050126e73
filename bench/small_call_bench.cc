// Small collectives, plain and through this library: what a call costs that is not worth compressing. Run with two
// ranks or more: mpiexec -n 2 build/release/bin/small_call_bench_mpich
#include <laconic/laconic_mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int warm_up = 3000;  // calls; by then those that are left to MPI go there at once
constexpr int short_batches = 400;
constexpr int short_calls = 200;                                      // in a batch
constexpr int longest = 1 << 20, long_batches = 40, long_calls = 20;  // for calls of more than 64 KiB

struct Work {
  std::vector<float> send, recv;
  MPI_Comm mpi;
  laconic_comm* comm;
  std::vector<int> counts, displs;  ///< of equal parts, which calls that end in v do not know
  std::vector<std::size_t> our_counts;
};

void require(int code) {
  if (code == LACONIC_OK) return;
  std::fprintf(stderr, "%s\n", laconic_last_error());
  std::abort();
}

void plain_allreduce(Work& w, int n) { MPI_Allreduce(w.send.data(), w.recv.data(), n, MPI_FLOAT, MPI_SUM, w.mpi); }
void our_allreduce(Work& w, int n) {
  require(laconic_allreduce(w.send.data(), w.recv.data(), static_cast<std::size_t>(n), LACONIC_F32, LACONIC_SUM, w.comm,
                            nullptr));
}
void plain_allgather(Work& w, int n) { MPI_Allgather(w.send.data(), n, MPI_FLOAT, w.recv.data(), n, MPI_FLOAT, w.mpi); }
void our_allgather(Work& w, int n) {
  require(laconic_allgather(w.send.data(), static_cast<std::size_t>(n), w.recv.data(), LACONIC_F32, w.comm, nullptr));
}

void plain_gatherv(Work& w, int n) {
  MPI_Gatherv(w.send.data(), n, MPI_FLOAT, w.recv.data(), w.counts.data(), w.displs.data(), MPI_FLOAT, 0, w.mpi);
}
void our_gatherv(Work& w, int n) {
  require(laconic_gatherv(w.send.data(), static_cast<std::size_t>(n), w.recv.data(), w.our_counts.data(), nullptr,
                          LACONIC_F32, 0, w.comm, nullptr));
}
void plain_scatterv(Work& w, int n) {
  MPI_Scatterv(w.recv.data(), w.counts.data(), w.displs.data(), MPI_FLOAT, w.send.data(), n, MPI_FLOAT, 0, w.mpi);
}
void our_scatterv(Work& w, int n) {
  require(laconic_scatterv(w.recv.data(), w.our_counts.data(), nullptr, w.send.data(), static_cast<std::size_t>(n),
                           LACONIC_F32, 0, w.comm, nullptr));
}
void plain_allgatherv(Work& w, int n) {
  MPI_Allgatherv(w.send.data(), n, MPI_FLOAT, w.recv.data(), w.counts.data(), w.displs.data(), MPI_FLOAT, w.mpi);
}
void our_allgatherv(Work& w, int) {
  require(laconic_allgatherv(w.send.data(), w.recv.data(), w.our_counts.data(), nullptr, LACONIC_F32, w.comm, nullptr));
}
void plain_alltoallv(Work& w, int) {
  MPI_Alltoallv(w.send.data(), w.counts.data(), w.displs.data(), MPI_FLOAT, w.recv.data(), w.counts.data(),
                w.displs.data(), MPI_FLOAT, w.mpi);
}
void our_alltoallv(Work& w, int) {
  require(laconic_alltoallv(w.send.data(), w.our_counts.data(), nullptr, w.recv.data(), w.our_counts.data(), nullptr,
                            LACONIC_F32, w.comm, nullptr));
}

using Collective = void (*)(Work&, int);

/// Nanoseconds a call, of one batch, on the slowest rank.
double batch(Collective call, Work& w, int n, int calls) {
  MPI_Barrier(w.mpi);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call(w, n);
  double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
  MPI_Allreduce(MPI_IN_PLACE, &ns, 1, MPI_DOUBLE, MPI_MAX, w.mpi);
  return ns;
}

/// Of what is not disturbed by others: the tenth of all batches that is fastest has no slower one.
double fast(std::vector<double> ns) {
  const auto tenth = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 10);
  std::nth_element(ns.begin(), tenth, ns.end());
  return *tenth;
}

void compare(const char* name, Collective plain, Collective ours, Work& w, int bytes) {
  const int n = bytes / static_cast<int>(sizeof(float));
  for (std::size_t r = 0; r < w.counts.size(); ++r) {
    w.counts[r] = n;
    w.displs[r] = static_cast<int>(r) * n;
    w.our_counts[r] = static_cast<std::size_t>(n);
  }
  for (int i = 0; i < warm_up; ++i) ours(w, n);
  std::vector<double> plain_ns, our_ns;
  const bool is_short = bytes <= 65536;
  const int calls = is_short ? short_calls : long_calls;
  for (int b = 0; b < (is_short ? short_batches : long_batches); ++b) {
    plain_ns.push_back(batch(plain, w, n, calls));
    our_ns.push_back(batch(ours, w, n, calls));
  }
  int rank = 0;
  MPI_Comm_rank(w.mpi, &rank);
  if (rank != 0) return;
  const double p = fast(plain_ns), o = fast(our_ns);
  std::printf("%-10s %7d B  plain %8.0f ns  laconic %8.0f ns  added %6.0f ns  ratio %.2f\n", name, bytes, p, o, o - p,
              o / p);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Work w{.send = {}, .recv = {}, .mpi = MPI_COMM_WORLD, .comm = nullptr, .counts = {}, .displs = {}, .our_counts = {}};
  MPI_Comm_dup(MPI_COMM_WORLD, &w.mpi);  // as the library has one of its own
  int ranks = 1;
  MPI_Comm_size(w.mpi, &ranks);
  const auto n = static_cast<std::size_t>(ranks);
  w.counts.resize(n);
  w.displs.resize(n);
  w.our_counts.resize(n);
  const int most = longest / static_cast<int>(sizeof(float)) * ranks;
  for (int i = 0; i < most; ++i) w.send.push_back(std::sin(static_cast<float>(i) * 0.01F));
  w.recv = w.send;
  require(laconic_comm_from_mpi(w.mpi, &w.comm));
  laconic_options options = LACONIC_OPTIONS_INIT;
  options.bound = "1e-3rel";
  require(laconic_comm_set_options(w.comm, &options));
  for (const int bytes : {8, 1024, 4096, 16384}) compare("allreduce", plain_allreduce, our_allreduce, w, bytes);
  for (const int bytes : {8, 1024, 4096, 16384}) compare("allgather", plain_allgather, our_allgather, w, bytes);
  for (int bytes = 1024; bytes <= longest; bytes *= 4) compare("gatherv", plain_gatherv, our_gatherv, w, bytes);
  for (int bytes = 1024; bytes <= longest; bytes *= 4) compare("scatterv", plain_scatterv, our_scatterv, w, bytes);
  for (int bytes = 1024; bytes <= longest; bytes *= 4)
    compare("allgatherv", plain_allgatherv, our_allgatherv, w, bytes);
  for (int bytes = 1024; bytes <= longest; bytes *= 4) compare("alltoallv", plain_alltoallv, our_alltoallv, w, bytes);
  laconic_comm_free(w.comm);
  MPI_Comm_free(&w.mpi);
  MPI_Finalize();
  return 0;
}
