#include <laconic/laconic_mpi.h>

#include <cstdio>
#include <laconic/laconic.hpp>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    laconic_comm* raw = nullptr;
    laconic::check(laconic_comm_from_mpi(MPI_COMM_WORLD, &raw));
    laconic::Comm comm(raw, {.bound = "1e-3"});
    std::vector<float> x(100000, 1.0F);
    comm.allreduce<float>(x, laconic::Op::sum);
    if (comm.rank() == 0) std::printf("sum %.2f\n", static_cast<double>(x[4711]));
  }
  MPI_Finalize();
}
