// A program whose error handler throws, as many C++ programs' do, or jumps: what it throws is caught where the program
// made the call, as under MPI alone, and its other calls go on.
//
//   throws TOLERANCE
//
// Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1.
#include <mpi.h>

#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int count = 30000;
int rank = 0, size = 1, wrong = 0, calls = 0, heard = 0;
double tolerance = 0;
bool jumps = false;
std::jmp_buf before;

void handle(MPI_Comm* /*comm*/, int* /*code*/, ...) {
  ++heard;
  if (jumps) std::longjmp(before, 1);
  throw std::runtime_error("the handler's");
}

void expect(bool good, const std::string& what) {
  ++calls;
  if (!good && wrong++ < 5) std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
}

// A call that is right, and served.
void go_on(MPI_Comm comm, const std::string& after) {
  std::vector<float> x(count), sum(count);
  for (int i = 0; i < count; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(std::sin(0.37 * i));
  MPI_Allreduce(x.data(), sum.data(), count, MPI_FLOAT, MPI_SUM, comm);
  bool good = true, exact = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = size * std::sin(0.37 * static_cast<double>(i));
    good = good && std::fabs(sum[i] - want) <= size * tolerance + 1e-4;
    exact = exact && sum[i] == static_cast<float>(want);
  }
  expect(good && !exact, "an allreduce after " + after);
}

template <typename Mistake>
void make(const std::string& what, Mistake&& mistake) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  go_on(comm, "nothing");
  heard = 0;
  volatile bool came_back = false;
  if (setjmp(before) == 0) {  // NOLINT(cert-err52-cpp): that is what is tested
    try {
      mistake(comm);
      came_back = true;
    } catch (const std::runtime_error& e) {
      expect(std::string(e.what()) == "the handler's", what + ": another error");
    }
  }
  expect(!came_back && heard == 1, what + ": no error, or two");
  go_on(MPI_COMM_WORLD, what);
  MPI_Comm_free(&comm);
}

void mistakes() {
  std::vector<float> x(count), all(static_cast<std::size_t>(count * size));
  std::vector<int> counts(static_cast<std::size_t>(size), -5), places(counts.size(), 0);
  make("a gatherv of less than nothing", [&](MPI_Comm comm) {
    MPI_Gatherv(x.data(), -5, MPI_FLOAT, all.data(), counts.data(), places.data(), MPI_FLOAT, 0, comm);
  });
  make("an alltoallv of less than nothing", [&](MPI_Comm comm) {
    MPI_Alltoallv(x.data(), counts.data(), places.data(), MPI_FLOAT, all.data(), counts.data(), places.data(),
                  MPI_FLOAT, comm);
  });
  // Laconic's own error.
  make("an allreduce of different lengths", [&](MPI_Comm comm) {
    MPI_Allreduce(x.data(), all.data(), rank == 0 ? count : count - 1000, MPI_FLOAT, MPI_SUM, comm);
  });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? std::atof(argv[1]) : 0;
  mistakes();
  jumps = true;
  mistakes();
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) std::printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0 ? 1 : 0;
}
