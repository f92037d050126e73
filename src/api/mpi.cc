// Communicators over MPI for the C interface. Compiled once per MPI library.
#include "transport/mpi/mpi.h"

#include <laconic/laconic_mpi.h>

#include "api/handle.h"

extern "C" int laconic_comm_from_mpi(MPI_Comm mpi, laconic_comm** comm) {
  if (comm == nullptr) return laconic::api::report(laconic::Code::invalid_argument, "comm is null");
  *comm = nullptr;
  return laconic::api::guarded([&] {
    if (mpi == MPI_COMM_NULL) throw laconic::Error(laconic::Code::invalid_argument, "mpi is MPI_COMM_NULL");
    const laconic::Options defaults = laconic::api::options_from_environment();
    *comm = new laconic_comm(laconic::make_mpi_transport(mpi), defaults);
  });
}
