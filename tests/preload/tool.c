/* A tool as profilers are, behind Laconic: it counts calls and makes them by the names that MPI has for tools, or, with
 * BY_NAME, by what it finds under MPI's name behind itself. With BEGINS it does so as MPI begins, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

extern int tool_calls;
int tool_calls = 0;

#ifdef BY_NAME
#define MPIS_OWN(function) (*(__typeof__(&P##function)*)(void*[]){dlsym(RTLD_NEXT, #function)})
#else
#define MPIS_OWN(function) P##function
#endif

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++tool_calls;
  return MPIS_OWN(MPI_Bcast)(data, count, type, root, comm);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  ++tool_calls;
  return MPIS_OWN(MPI_Comm_dup)(comm, made);
}
int MPI_Comm_free(MPI_Comm* comm) {
  ++tool_calls;
  return MPIS_OWN(MPI_Comm_free)(comm);
}

#ifdef BEGINS
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return PMPI_Init_thread(argc, argv, required, provided);
}
#endif
