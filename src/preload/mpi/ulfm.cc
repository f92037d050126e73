#include "preload/mpi/ulfm.h"

#include "preload/mpi/next.h"
#include "preload/mpi/requests.h"
#include "preload/mpi/runtime.h"

namespace laconic::preload {

#ifdef OPEN_MPI

int class_of_failure(MPI_Comm comm) {
  // Of Open MPI 5's mpi.h; version 4, whose headers this may be built with, has neither these nor the functions.
  constexpr int proc_failed = 75, revoked = 77;
  static const auto is_revoked = next<int (*)(MPI_Comm, int*)>("MPIX_Comm_is_revoked");
  static const auto get_failed = next<int (*)(MPI_Comm, MPI_Group*)>("MPIX_Comm_get_failed");
  int yes = 0;
  if (is_revoked != nullptr && is_revoked(comm, &yes) == MPI_SUCCESS && yes != 0) return revoked;
  MPI_Group failed = MPI_GROUP_NULL;
  if (get_failed == nullptr || get_failed(comm, &failed) != MPI_SUCCESS) return MPI_SUCCESS;
  int ranks = 0;
  PMPI_Group_size(failed, &ranks);
  if (failed != MPI_GROUP_EMPTY) PMPI_Group_free(&failed);
  return ranks != 0 ? proc_failed : MPI_SUCCESS;
}

#else

int class_of_failure(MPI_Comm /*comm*/) { return MPI_SUCCESS; }  // MPICH's own device (ch4) cannot say

#endif

}  // namespace laconic::preload

using laconic::preload::Group;
using laconic::preload::Runtime;

extern "C" int MPIX_Comm_revoke(MPI_Comm comm) {
  static const auto mpi = laconic::preload::next<int (*)(MPI_Comm)>("MPIX_Comm_revoke");
  if (mpi == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION;
  const int code = mpi(comm);
  if (code != MPI_SUCCESS || Runtime::get() == nullptr) return code;
  if (Group* const group = Runtime::get()->group_of(comm)) group->revoke(mpi);
  laconic::preload::revoke_persistent(comm, mpi);
  return code;
}
