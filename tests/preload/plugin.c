/* What plugins.c opens. MPI's constants are the program's: under Open MPI they are variables, of which a program has
 * copies that nobody finds who is opened with RTLD_DEEPBIND. */
#include <mpi.h>

int plugin_bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm);
int plugin_comm_dup(MPI_Comm comm, MPI_Comm* made);
int plugin_comm_free(MPI_Comm* comm);

int plugin_bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return MPI_Bcast(data, count, type, root, comm);
}
int plugin_comm_dup(MPI_Comm comm, MPI_Comm* made) { return MPI_Comm_dup(comm, made); }
int plugin_comm_free(MPI_Comm* comm) { return MPI_Comm_free(comm); }
