// A rank that is killed in the middle of an allreduce: the others end with errors that name it. Each says so in a line.
// None ends MPI, which would wait for the dead one; and none ends before all are done, for then launchers end the
// others.
//
//   killed_rank PATH         a rank
//   killed_rank PATH wait    what the launcher has in the place of the dead rank
//
// Who is done leaves a file PATH.RANK.
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "collective/allreduce.h"
#include "core/error.h"
#include "transport/faulty.h"
#include "transport/mpi/mpi.h"

namespace {

using namespace laconic;

constexpr int ranks = 4;
constexpr int killed = 1;

std::string mark(const std::string& path, int rank) { return path + "." + std::to_string(rank); }

void wait_for_all(const std::string& path) {
  for (int r = 0; r < ranks; ++r) {
    while (r != killed && !std::filesystem::exists(mark(path, r))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

std::string error_of_reduction(Transport& transport) {
  const auto fault = [&](std::vector<std::uint8_t>&, int, std::uint64_t nth) {
    if (transport.rank() == killed && nth == 20) ::raise(SIGKILL);
  };
  const auto doomed = make_faulty_transport(transport, fault);
  Communicator comm(*doomed);
  Options options;
  options.bound = Bound::parse("1e-3");
  options.segment_values = 1024;
  options.schedule = Schedule::ring;
  std::vector<float> x(100000), sum(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000);
  try {
    allreduce({x.data(), x.size(), DType::f32}, {sum.data(), sum.size(), DType::f32}, Op::sum, comm, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string path = argv[1];
  if (argc > 2) {
    wait_for_all(path);
    return 0;
  }
  int level = MPI_THREAD_SINGLE, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::filesystem::remove(mark(path, rank));
  const auto transport = make_mpi_transport(MPI_COMM_WORLD, 3);
  const std::string text = error_of_reduction(*transport);
  const std::size_t silent = text.find(": no sign of rank");
  // Among others where the machine stalls.
  const bool named =
      silent != std::string::npos &&
      text.substr(silent, text.find(';', silent) - silent).find(std::to_string(killed)) != std::string::npos;
  std::printf("rank %d %s: %s\n", rank, named ? "names it" : "is wrong", text.c_str());
  std::fflush(stdout);
  std::ofstream(mark(path, rank)).close();
  wait_for_all(path);
  ::_exit(0);
}
