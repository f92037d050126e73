// What makes communicators: all ranks come before MPI begins.
//
// Both MPIs make one communicator at a time: a thread that waits for other ranks in MPI_Comm_dup holds up every other.
// Laconic's threads make some too, for calls that do not block; and the ranks that MPI_Comm_dup waits for may wait for
// such a call. Nothing is held up while the ranks wait for each other beforehand.
#include <mpi.h>

#include "preload/mpi/next.h"
#include "preload/mpi/runtime.h"

using laconic::preload::Runtime;

namespace {

void let_all_come(MPI_Comm comm) {
  Runtime* const runtime = Runtime::get();
  if (runtime == nullptr || !runtime->has_threads()) return;
  if (runtime->group_of(comm) != nullptr) laconic::preload::wait_for_all(comm);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): parameter lists have none
#define LACONIC_LIST(...) __VA_ARGS__
#define LACONIC_CREATES(name, comm, parameters, arguments)                     \
  extern "C" int name(parameters) {                                            \
    static const auto mpi = laconic::preload::next<decltype(&P##name)>(#name); \
    let_all_come(comm);                                                        \
    return mpi(arguments);                                                     \
  }
// NOLINTEND(bugprone-macro-parentheses)

LACONIC_CREATES(MPI_Comm_dup, comm, LACONIC_LIST(MPI_Comm comm, MPI_Comm* made), LACONIC_LIST(comm, made))
LACONIC_CREATES(MPI_Comm_dup_with_info, comm, LACONIC_LIST(MPI_Comm comm, MPI_Info info, MPI_Comm* made),
                LACONIC_LIST(comm, info, made))
LACONIC_CREATES(MPI_Comm_create, comm, LACONIC_LIST(MPI_Comm comm, MPI_Group group, MPI_Comm* made),
                LACONIC_LIST(comm, group, made))
LACONIC_CREATES(MPI_Comm_split, comm, LACONIC_LIST(MPI_Comm comm, int color, int key, MPI_Comm* made),
                LACONIC_LIST(comm, color, key, made))
LACONIC_CREATES(MPI_Comm_split_type, comm,
                LACONIC_LIST(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
                LACONIC_LIST(comm, type, key, info, made))
LACONIC_CREATES(MPI_Cart_create, comm,
                LACONIC_LIST(MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm* made),
                LACONIC_LIST(comm, n, dims, periods, reorder, made))
LACONIC_CREATES(MPI_Cart_sub, comm, LACONIC_LIST(MPI_Comm comm, const int remain[], MPI_Comm* made),
                LACONIC_LIST(comm, remain, made))
LACONIC_CREATES(MPI_Graph_create, comm,
                LACONIC_LIST(MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm* made),
                LACONIC_LIST(comm, n, index, edges, reorder, made))
LACONIC_CREATES(MPI_Dist_graph_create, comm,
                LACONIC_LIST(MPI_Comm comm, int n, const int nodes[], const int degrees[], const int targets[],
                             const int weights[], MPI_Info info, int reorder, MPI_Comm* made),
                LACONIC_LIST(comm, n, nodes, degrees, targets, weights, info, reorder, made))
LACONIC_CREATES(MPI_Dist_graph_create_adjacent, comm,
                LACONIC_LIST(MPI_Comm comm, int in, const int sources[], const int in_weights[], int out,
                             const int targets[], const int out_weights[], MPI_Info info, int reorder, MPI_Comm* made),
                LACONIC_LIST(comm, in, sources, in_weights, out, targets, out_weights, info, reorder, made))
LACONIC_CREATES(MPI_Intercomm_create, comm,
                LACONIC_LIST(MPI_Comm comm, int leader, MPI_Comm peers, int other, int tag, MPI_Comm* made),
                LACONIC_LIST(comm, leader, peers, other, tag, made))
LACONIC_CREATES(MPI_Win_create, comm,
                LACONIC_LIST(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* made),
                LACONIC_LIST(base, bytes, unit, info, comm, made))
LACONIC_CREATES(MPI_Win_allocate, comm,
                LACONIC_LIST(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* made),
                LACONIC_LIST(bytes, unit, info, comm, base, made))
LACONIC_CREATES(MPI_Win_allocate_shared, comm,
                LACONIC_LIST(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* made),
                LACONIC_LIST(bytes, unit, info, comm, base, made))
LACONIC_CREATES(MPI_Win_create_dynamic, comm, LACONIC_LIST(MPI_Info info, MPI_Comm comm, MPI_Win* made),
                LACONIC_LIST(info, comm, made))
LACONIC_CREATES(MPI_File_open, comm,
                LACONIC_LIST(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* made),
                LACONIC_LIST(comm, name, mode, info, made))
