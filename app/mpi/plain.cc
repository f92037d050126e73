#include "mpi/plain.h"

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <limits>

#include "exit_code.h"

namespace laconic::app {
namespace {

int run(Collective collective, ConstArray send, MutArray recv, MPI_Datatype type) {
  MPI_Comm const world = MPI_COMM_WORLD;
  int ranks = 1;
  MPI_Comm_size(world, &ranks);
  const auto sent = static_cast<int>(send.count);
  const auto received = static_cast<int>(recv.count);
  switch (collective) {
    case Collective::allreduce:
      return MPI_Allreduce(send.data, recv.data, sent, type, MPI_SUM, world);
    case Collective::reduce:
      return MPI_Reduce(send.data, recv.data, sent, type, MPI_SUM, 0, world);
    case Collective::reduce_scatter:
      return MPI_Reduce_scatter_block(send.data, recv.data, received, type, MPI_SUM, world);
    case Collective::bcast:
      return MPI_Bcast(recv.data, received, type, 0, world);
    case Collective::scatter:
      return MPI_Scatter(send.data, received, type, recv.data, received, type, 0, world);
    case Collective::gather:
      return MPI_Gather(send.data, sent, type, recv.data, sent, type, 0, world);
    case Collective::allgather:
      return MPI_Allgather(send.data, sent, type, recv.data, sent, type, world);
    case Collective::alltoall:
      return MPI_Alltoall(send.data, sent / ranks, type, recv.data, received / ranks, type, world);
    default:
      return MPI_ERR_OTHER;
  }
}

}  // namespace

std::string mpi_library_name() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  if (text.rfind("MPICH Version:", 0) == 0) {
    const std::size_t digits = text.find_first_of("0123456789");
    return "MPICH " + text.substr(digits, text.find_first_of(" \t\n", digits) - digits);
  }
  return text.substr(0, text.find_first_of(",\n"));
}

void mpi_collective(Collective collective, ConstArray send, MutArray recv) {
  if (std::max(send.count, recv.count) > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Failure(Exit::usage, fmt::format("plain MPI_{} takes no more than 2^31 - 1 elements; --size is too large",
                                           name_of(collective)));
  if (run(collective, send, recv, send.dtype == DType::f64 ? MPI_DOUBLE : MPI_FLOAT) != MPI_SUCCESS)
    throw Failure(Exit::communication, fmt::format("plain MPI_{} failed", name_of(collective)));
}

}  // namespace laconic::app
