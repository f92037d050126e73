#include "collective/collective.h"

namespace laconic {

const char* name_of(Collective c) {
  switch (c) {
    case Collective::allreduce:
      return "allreduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::allgather:
      return "allgather";
    case Collective::bcast:
      return "bcast";
    case Collective::scatter:
      return "scatter";
    case Collective::gather:
      return "gather";
    case Collective::alltoall:
      return "alltoall";
    case Collective::reduce:
      return "reduce";
    case Collective::scan:
      return "scan";
    case Collective::exscan:
      return "exscan";
    case Collective::send:
      return "send";
    case Collective::recv:
      return "recv";
    case Collective::sendrecv:
      return "sendrecv";
  }
  return "?";
}

}  // namespace laconic
