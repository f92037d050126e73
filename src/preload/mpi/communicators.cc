// What makes communicators: Laconic then makes its own for the same ranks.
//
// Not when the first non-blocking call comes, which must not wait for other ranks: a thread of Laconic's would have to
// wait for them, and in both MPIs a thread that waits there can hold up all others that make communicators, even where
// those wait for nothing but each other.
#include <mpi.h>

#include <cstddef>
#include <optional>

#include "preload/mpi/creations.h"
#include "preload/mpi/next.h"
#include "preload/mpi/runtime.h"

using laconic::preload::Creation;
using laconic::preload::Runtime;

namespace {

/// Calls mpi(&comm), which makes one for the program, from `parent` or, null, from a group. MPI_COMM_WORLD, which
/// nothing makes, stays there if MPI refuses: after an error handler of the program's MPICH 5 says MPI_SUCCESS.
template <typename Mpi>
int make_accompanied(MPI_Comm parent, MPI_Comm* made, Mpi&& mpi) {
  if (made == nullptr) return mpi(made);
  if (Runtime::get() == nullptr) {
    const int code = mpi(made);
    if (code == MPI_SUCCESS) Runtime::note_early(*made, parent);
    return code;
  }
  MPI_Comm comm = MPI_COMM_WORLD;
  const int code = [&] {
    const Creation creation;
    return mpi(&comm);
  }();
  if (comm != MPI_COMM_WORLD) *made = comm;
  if (code == MPI_SUCCESS && comm != MPI_COMM_WORLD) Runtime::get()->accompany(comm, parent);
  return code;
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): parameter lists have none
#define LACONIC_LIST(...) __VA_ARGS__
#define LACONIC_CREATES(name, parameters, arguments)                                                     \
  extern "C" int name(parameters, MPI_Comm* made) {                                                      \
    static const auto mpi = laconic::preload::next<decltype(&P##name)>(#name);                           \
    return make_accompanied(comm, made, [&](MPI_Comm* comm_made) { return mpi(arguments, comm_made); }); \
  }
// NOLINTEND(bugprone-macro-parentheses)

LACONIC_CREATES(MPI_Comm_dup, LACONIC_LIST(MPI_Comm comm), LACONIC_LIST(comm))
LACONIC_CREATES(MPI_Comm_dup_with_info, LACONIC_LIST(MPI_Comm comm, MPI_Info info), LACONIC_LIST(comm, info))
LACONIC_CREATES(MPI_Comm_create, LACONIC_LIST(MPI_Comm comm, MPI_Group group), LACONIC_LIST(comm, group))
LACONIC_CREATES(MPI_Comm_split, LACONIC_LIST(MPI_Comm comm, int color, int key), LACONIC_LIST(comm, color, key))
LACONIC_CREATES(MPI_Comm_split_type, LACONIC_LIST(MPI_Comm comm, int type, int key, MPI_Info info),
                LACONIC_LIST(comm, type, key, info))
LACONIC_CREATES(MPI_Cart_create, LACONIC_LIST(MPI_Comm comm, int n, const int dims[], const int periods[], int reorder),
                LACONIC_LIST(comm, n, dims, periods, reorder))
LACONIC_CREATES(MPI_Cart_sub, LACONIC_LIST(MPI_Comm comm, const int remain[]), LACONIC_LIST(comm, remain))
LACONIC_CREATES(MPI_Graph_create, LACONIC_LIST(MPI_Comm comm, int n, const int index[], const int edges[], int reorder),
                LACONIC_LIST(comm, n, index, edges, reorder))
LACONIC_CREATES(MPI_Dist_graph_create,
                LACONIC_LIST(MPI_Comm comm, int n, const int nodes[], const int degrees[], const int targets[],
                             const int weights[], MPI_Info info, int reorder),
                LACONIC_LIST(comm, n, nodes, degrees, targets, weights, info, reorder))
LACONIC_CREATES(MPI_Dist_graph_create_adjacent,
                LACONIC_LIST(MPI_Comm comm, int in, const int sources[], const int in_weights[], int out,
                             const int targets[], const int out_weights[], MPI_Info info, int reorder),
                LACONIC_LIST(comm, in, sources, in_weights, out, targets, out_weights, info, reorder))
LACONIC_CREATES(MPI_Comm_create_group, LACONIC_LIST(MPI_Comm comm, MPI_Group group, int tag),
                LACONIC_LIST(comm, group, tag))
LACONIC_CREATES(MPI_Intercomm_create, LACONIC_LIST(MPI_Comm comm, int leader, MPI_Comm peers, int other, int tag),
                LACONIC_LIST(comm, leader, peers, other, tag))
LACONIC_CREATES(MPI_Intercomm_merge, LACONIC_LIST(MPI_Comm comm, int high), LACONIC_LIST(comm, high))
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
#if MPI_VERSION < 4  // Open MPI 5, whose library this one is for, too, has them
extern "C" int MPI_Comm_create_from_group(MPI_Group, const char*, MPI_Info, MPI_Errhandler, MPI_Comm*);
extern "C" int MPI_Intercomm_create_from_groups(MPI_Group, int, MPI_Group, int, const char*, MPI_Info, MPI_Errhandler,
                                                MPI_Comm*);
#endif
extern "C" int MPI_Comm_create_from_group(MPI_Group group, const char* tag, MPI_Info info, MPI_Errhandler errors,
                                          MPI_Comm* made) {
  static const auto mpi = laconic::preload::next<decltype(&MPI_Comm_create_from_group)>("MPI_Comm_create_from_group");
  return make_accompanied(MPI_COMM_NULL, made,
                          [&](MPI_Comm* comm_made) { return mpi(group, tag, info, errors, comm_made); });
}

extern "C" int MPI_Intercomm_create_from_groups(MPI_Group group, int leader, MPI_Group others, int other,
                                                const char* tag, MPI_Info info, MPI_Errhandler errors, MPI_Comm* made) {
  static const auto mpi =
      laconic::preload::next<decltype(&MPI_Intercomm_create_from_groups)>("MPI_Intercomm_create_from_groups");
  return make_accompanied(MPI_COMM_NULL, made, [&](MPI_Comm* comm_made) {
    return mpi(group, leader, others, other, tag, info, errors, comm_made);
  });
}
#endif

#ifdef MPIX_STREAM_NULL  // MPICH's
namespace {

/// Some ranks' may be tied to a stream, and others' not: over none of them.
template <typename Mpi>
int make_for_streams(MPI_Comm* made, Mpi&& mpi) {
  const int code = mpi();
  if (code == MPI_SUCCESS && made != nullptr && Runtime::get() != nullptr) Runtime::get()->leave_alone(*made);
  return code;
}

}  // namespace

extern "C" int MPIX_Stream_comm_create(MPI_Comm comm, MPIX_Stream stream, MPI_Comm* made) {
  static const auto mpi = laconic::preload::next<decltype(&MPIX_Stream_comm_create)>("MPIX_Stream_comm_create");
  return make_for_streams(made, [&] { return mpi(comm, stream, made); });
}

extern "C" int MPIX_Stream_comm_create_multiplex(MPI_Comm comm, int count, MPIX_Stream streams[], MPI_Comm* made) {
  static const auto mpi =
      laconic::preload::next<decltype(&MPIX_Stream_comm_create_multiplex)>("MPIX_Stream_comm_create_multiplex");
  return make_for_streams(made, [&] { return mpi(comm, count, streams, made); });
}
#endif

namespace {

#ifdef OPEN_MPI  // see Duplication

/// Whether MPI duplicates it by itself.
bool is_of_one_process(MPI_Comm comm) {
  int between_groups = 0, size = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  PMPI_Comm_size(comm, &size);
  return between_groups == 0 && size == 1;
}

/// mpi() begins to duplicate `comm`; made() is what it will have made, which it says at once. What it refuses, on this
/// rank alone maybe, has not begun.
template <typename Mpi, typename Made>
int duplicate(MPI_Comm comm, Mpi&& mpi, Made&& made) {
  if (comm == MPI_COMM_NULL) return mpi();
  if (Runtime::get() == nullptr) {
    const int code = mpi();
    if (code == MPI_SUCCESS) Runtime::note_early(made(), comm);
    return code;
  }
  std::optional<int> refused;
  laconic::preload::Group* const group = Runtime::get()->group_of(comm, &refused);
  if (refused) return *refused;
  if (group == nullptr && is_of_one_process(comm)) return mpi();
  laconic::preload::Duplication duplication;
  const bool before = group != nullptr && group->is_duplicated_later();
  if (group != nullptr) group->set_duplicated_later(true);
  const int code = mpi();
  if (code == MPI_SUCCESS) {
    laconic::preload::Freeing::is_over(made());
    duplication.makes(made());
  } else if (group != nullptr) {
    group->set_duplicated_later(before);
  }
  return code;
}

template <typename... Arguments>
void duplicate_from_fortran(const char* function, const MPI_Fint* made, MPI_Fint* code, const MPI_Fint* comm,
                            Arguments... rest) {
  const auto mpi = laconic::preload::next<void (*)(const MPI_Fint*, Arguments...)>(function);
  MPI_Fint result = MPI_SUCCESS;
  if (code == nullptr) code = &result;
  *code = duplicate(
      PMPI_Comm_f2c(*comm),
      [&] {
        mpi(comm, rest...);
        return static_cast<int>(*code);
      },
      [&] { return PMPI_Comm_f2c(*made); });
}
#else
/// What is made from a session's is left alone as that is, which MPI hands on (Runtime::hand_on), once it knows.
template <typename Mpi, typename Made>
int duplicate(MPI_Comm comm, Mpi&& mpi, Made&& made) {
  Runtime* const runtime = Runtime::get();
  std::optional<int> refused;
  if (runtime != nullptr) runtime->group_of(comm, &refused);
  if (refused) return *refused;
  const int code = mpi();
  if (runtime == nullptr && code == MPI_SUCCESS) Runtime::note_early(made(), comm);
  return code;
}
#endif

}  // namespace

extern "C" {

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Comm_idup)>("MPI_Comm_idup");
  if (newcomm == nullptr) return mpi(comm, newcomm, request);
  return duplicate(comm, [&] { return mpi(comm, newcomm, request); }, [&] { return *newcomm; });
}

int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made, MPI_Request* request);
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made, MPI_Request* request) {
  static const auto mpi = laconic::preload::next<decltype(&MPI_Comm_idup_with_info)>("MPI_Comm_idup_with_info");
  if (mpi == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION;  // Open MPI 4 has none
  if (made == nullptr) return mpi(comm, info, made, request);
  return duplicate(comm, [&] { return mpi(comm, info, made, request); }, [&] { return *made; });
}

#ifdef OPEN_MPI
// NOLINTBEGIN(readability-identifier-naming)
void mpi_comm_idup_(const MPI_Fint* comm, MPI_Fint* made, MPI_Fint* request, MPI_Fint* code) {
  duplicate_from_fortran("mpi_comm_idup_", made, code, comm, made, request, code);
}
void ompi_comm_idup_f(const MPI_Fint* comm, MPI_Fint* made, MPI_Fint* request, MPI_Fint* code) {
  duplicate_from_fortran("ompi_comm_idup_f", made, code, comm, made, request, code);
}
void mpi_comm_idup_with_info_(const MPI_Fint* comm, const MPI_Fint* info, MPI_Fint* made, MPI_Fint* request,
                              MPI_Fint* code) {
  duplicate_from_fortran("mpi_comm_idup_with_info_", made, code, comm, info, made, request, code);
}
void ompi_comm_idup_with_info_f(const MPI_Fint* comm, const MPI_Fint* info, MPI_Fint* made, MPI_Fint* request,
                                MPI_Fint* code) {
  duplicate_from_fortran("ompi_comm_idup_with_info_f", made, code, comm, info, made, request, code);
}
// NOLINTEND(readability-identifier-naming)
#endif

}  // extern "C"

#ifndef MPI_ABI  // which has no Fortran of its own
// Fortran's of what makes them from groups of sessions are handed on as they are; the length of the tag comes last.
// NOLINTBEGIN(bugprone-macro-parentheses, readability-identifier-naming)
#define LACONIC_OF_GROUP void *a, void *b, void *c, void *d
#define LACONIC_OF_GROUPS LACONIC_OF_GROUP, void *e, void *f, void *g
#define LACONIC_ALL_OF_GROUP a, b, c, d
#define LACONIC_ALL_OF_GROUPS LACONIC_ALL_OF_GROUP, e, f, g
#define LACONIC_FROM_GROUPS(name, n)                                                                \
  extern "C" void name(LACONIC_OF_##n, MPI_Fint* made, MPI_Fint* code, std::size_t length);         \
  extern "C" void name(LACONIC_OF_##n, MPI_Fint* made, MPI_Fint* code, std::size_t length) {        \
    static const auto mpi = laconic::preload::next<decltype(&name)>(#name);                         \
    MPI_Fint result = MPI_SUCCESS;                                                                  \
    MPI_Fint& said = code != nullptr ? *code : result;                                              \
    make_accompanied_in_fortran(made, said, [&] { mpi(LACONIC_ALL_OF_##n, made, &said, length); }); \
  }

namespace {

template <typename Mpi>
void make_accompanied_in_fortran(const MPI_Fint* made, const MPI_Fint& code, Mpi&& mpi) {
  MPI_Comm comm = MPI_COMM_NULL;
  make_accompanied(MPI_COMM_NULL, &comm, [&](MPI_Comm* comm_made) {
    mpi();
    if (code == MPI_SUCCESS) *comm_made = PMPI_Comm_f2c(*made);
    return static_cast<int>(code);
  });
}

}  // namespace

#ifdef OPEN_MPI
LACONIC_FROM_GROUPS(mpi_comm_create_from_group_, GROUP)
LACONIC_FROM_GROUPS(ompi_comm_create_from_group_f, GROUP)
LACONIC_FROM_GROUPS(mpi_intercomm_create_from_groups_, GROUPS)
LACONIC_FROM_GROUPS(ompi_intercomm_create_from_groups_f, GROUPS)
#else
LACONIC_FROM_GROUPS(mpi_comm_create_from_group_f08_, GROUP)
LACONIC_FROM_GROUPS(mpi_intercomm_create_from_groups_f08_, GROUPS)
#endif
// NOLINTEND(bugprone-macro-parentheses, readability-identifier-naming)
#endif
