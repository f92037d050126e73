// Calls in which MPI makes a communicator that Laconic has nothing to do with, but that it makes one at a time with
// Laconic's own: see creations.h. Windows and files have one inside; what joins programs makes one between them.
#include <mpi.h>

#ifdef OPEN_MPI

#include <cstddef>

#include "preload/mpi/creations.h"
#include "preload/mpi/next.h"
#include "preload/mpi/runtime.h"

namespace {

template <typename Mpi>
auto make(Mpi&& mpi) {
  if (laconic::preload::Runtime::get() == nullptr) return mpi();
  const laconic::preload::Creation creation;
  return mpi();
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses, readability-identifier-naming): parameter lists have none; Fortran's names
#define LACONIC_LIST(...) __VA_ARGS__
#define LACONIC_MAKES(name, parameters, arguments)                             \
  extern "C" int name(parameters) {                                            \
    static const auto mpi = laconic::preload::next<decltype(&P##name)>(#name); \
    return make([&] { return mpi(arguments); });                               \
  }
#define LACONIC_HANDS_ON_AS(name, parameters, arguments)                    \
  extern "C" void name(parameters);                                         \
  extern "C" void name(parameters) {                                        \
    static const auto mpi = laconic::preload::next<decltype(&name)>(#name); \
    make([&] { mpi(arguments); });                                          \
  }
#define LACONIC_HANDS_ON(name, parameters, arguments)                                   \
  LACONIC_HANDS_ON_AS(mpi_##name##_, LACONIC_LIST(parameters), LACONIC_LIST(arguments)) \
  LACONIC_HANDS_ON_AS(ompi_##name##_f, LACONIC_LIST(parameters), LACONIC_LIST(arguments))

LACONIC_MAKES(MPI_Win_create,
              LACONIC_LIST(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* made),
              LACONIC_LIST(base, size, unit, info, comm, made))
LACONIC_MAKES(MPI_Win_allocate,
              LACONIC_LIST(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* made),
              LACONIC_LIST(size, unit, info, comm, base, made))
LACONIC_MAKES(MPI_Win_allocate_shared,
              LACONIC_LIST(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* made),
              LACONIC_LIST(size, unit, info, comm, base, made))
LACONIC_MAKES(MPI_Win_create_dynamic, LACONIC_LIST(MPI_Info info, MPI_Comm comm, MPI_Win* made),
              LACONIC_LIST(info, comm, made))
LACONIC_MAKES(MPI_File_open, LACONIC_LIST(MPI_Comm comm, const char* path, int mode, MPI_Info info, MPI_File* made),
              LACONIC_LIST(comm, path, mode, info, made))
LACONIC_MAKES(MPI_Comm_accept, LACONIC_LIST(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* made),
              LACONIC_LIST(port, info, root, comm, made))
LACONIC_MAKES(MPI_Comm_connect, LACONIC_LIST(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* made),
              LACONIC_LIST(port, info, root, comm, made))
LACONIC_MAKES(MPI_Comm_join, LACONIC_LIST(int socket, MPI_Comm* made), LACONIC_LIST(socket, made))
LACONIC_MAKES(MPI_Comm_spawn,
              LACONIC_LIST(const char* command, char** arguments, int processes, MPI_Info info, int root, MPI_Comm comm,
                           MPI_Comm* made, int* codes),
              LACONIC_LIST(command, arguments, processes, info, root, comm, made, codes))
LACONIC_MAKES(MPI_Comm_spawn_multiple,
              LACONIC_LIST(int n, char** commands, char*** arguments, const int* processes, const MPI_Info* infos,
                           int root, MPI_Comm comm, MPI_Comm* made, int* codes),
              LACONIC_LIST(n, commands, arguments, processes, infos, root, comm, made, codes))

// Fortran's are handed on as they are; the lengths of its strings come last.
#define LACONIC_HANDED_3 void *a, void *b, void *c
#define LACONIC_HANDED_4 LACONIC_HANDED_3, void* d
#define LACONIC_HANDED_6 LACONIC_HANDED_4, void *e, void *f
#define LACONIC_HANDED_7 LACONIC_HANDED_6, void* g
#define LACONIC_HANDED_9 LACONIC_HANDED_7, void *h, void *i
#define LACONIC_EACH_6 a, b, c, d, e, f
#define LACONIC_EACH_9 LACONIC_EACH_6, g, h, i
LACONIC_HANDS_ON(win_create, LACONIC_LIST(LACONIC_HANDED_7), LACONIC_LIST(LACONIC_EACH_6, g))
LACONIC_HANDS_ON(win_allocate, LACONIC_LIST(LACONIC_HANDED_7), LACONIC_LIST(LACONIC_EACH_6, g))
LACONIC_HANDS_ON(win_allocate_shared, LACONIC_LIST(LACONIC_HANDED_7), LACONIC_LIST(LACONIC_EACH_6, g))
LACONIC_HANDS_ON(win_create_dynamic, LACONIC_LIST(LACONIC_HANDED_4), LACONIC_LIST(a, b, c, d))
LACONIC_HANDS_ON(file_open, LACONIC_LIST(LACONIC_HANDED_6, std::size_t n), LACONIC_LIST(LACONIC_EACH_6, n))
LACONIC_HANDS_ON(comm_accept, LACONIC_LIST(LACONIC_HANDED_6, std::size_t n), LACONIC_LIST(LACONIC_EACH_6, n))
LACONIC_HANDS_ON(comm_connect, LACONIC_LIST(LACONIC_HANDED_6, std::size_t n), LACONIC_LIST(LACONIC_EACH_6, n))
LACONIC_HANDS_ON(comm_join, LACONIC_LIST(LACONIC_HANDED_3), LACONIC_LIST(a, b, c))
LACONIC_HANDS_ON(comm_spawn, LACONIC_LIST(LACONIC_HANDED_9, std::size_t n, std::size_t m),
                 LACONIC_LIST(LACONIC_EACH_9, n, m))
LACONIC_HANDS_ON(comm_spawn_multiple, LACONIC_LIST(LACONIC_HANDED_9, void* j, std::size_t n, std::size_t m),
                 LACONIC_LIST(LACONIC_EACH_9, j, n, m))
LACONIC_HANDS_ON_AS(mpi_win_allocate_cptr_, LACONIC_LIST(LACONIC_HANDED_7), LACONIC_LIST(LACONIC_EACH_6, g))
LACONIC_HANDS_ON_AS(ompi_win_allocate_cptr_f, LACONIC_LIST(LACONIC_HANDED_7), LACONIC_LIST(LACONIC_EACH_6, g))
LACONIC_HANDS_ON_AS(mpi_win_allocate_shared_cptr_, LACONIC_LIST(LACONIC_HANDED_7), LACONIC_LIST(LACONIC_EACH_6, g))
LACONIC_HANDS_ON_AS(ompi_win_allocate_shared_cptr_f, LACONIC_LIST(LACONIC_HANDED_7), LACONIC_LIST(LACONIC_EACH_6, g))
// NOLINTEND(bugprone-macro-parentheses, readability-identifier-naming)

#endif
