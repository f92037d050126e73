// A program that makes calls and ends MPI while it exits, after the library's own static objects would have gone.
// Prints "late calls, all as they should be".
#include <laconic/laconic_mpi.h>
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

namespace {

constexpr std::size_t count = 200000;
laconic_comm* comm = nullptr;
int rank = 0;
int size = 1;
bool right = true;

void check(int code, const std::vector<float>& sum, const char* what) {
  const auto off = [&](std::size_t i) { return std::abs(sum[i] - size * std::sin(0.01 * i)) > 2e-3; };
  bool wrong = code != LACONIC_OK || !std::isnan(sum[7]);
  for (std::size_t i = 8; i < count; ++i) wrong = wrong || off(i);
  if (!wrong) return;
  right = false;
  std::fprintf(stderr, "rank %d: %s: code %d %s\n", rank, what, code, laconic_last_error());
}

void all_calls() {
  std::vector<float> x(count), sum(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(std::sin(0.01 * static_cast<double>(i)));
  x[7] = std::numeric_limits<float>::quiet_NaN();  // sums of exceptions have scratch memory of their own
  laconic_options options = LACONIC_OPTIONS_INIT;
  options.bound = "1e-3";
  options.mode = LACONIC_MODE_COMPRESSED;
  check(laconic_allreduce(x.data(), sum.data(), count, LACONIC_F32, LACONIC_SUM, comm, &options), sum, "allreduce");
  sum.assign(count, 0);
  laconic_request* request = nullptr;
  int code = laconic_iallreduce(x.data(), sum.data(), count, LACONIC_F32, LACONIC_SUM, comm, &options, &request);
  if (code == LACONIC_OK) code = laconic_wait(&request);
  check(code, sum, "iallreduce");
}

void end() {
  all_calls();
  laconic_comm_free(comm);
  MPI_Finalize();
  if (rank == 0 && right) std::puts("late calls, all as they should be");
  std::fflush(stdout);
  if (!right) std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::atexit(end);
  if (laconic_comm_from_mpi(MPI_COMM_WORLD, &comm) != LACONIC_OK) return 1;
  all_calls();
  return 0;
}
