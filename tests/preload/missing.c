/* A program that looks which functions its MPI has: those of a newer MPI must not seem to be there because Laconic is.
 *
 *   missing
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#pragma weak MPI_Comm_idup_with_info
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made, MPI_Request* request);

static const char* const names[] = {"MPI_Allreduce",
                                    "MPI_Allreduce_c",
                                    "MPI_Iallreduce",
                                    "MPI_Iallreduce_c",
                                    "MPI_Allreduce_init",
                                    "MPI_Allreduce_init_c",
                                    "MPIX_Allreduce_init",
                                    "MPI_Comm_idup",
                                    "MPI_Gatherv_init",
                                    "MPIX_Gatherv_init",
                                    "MPI_Session_init",
                                    "MPI_Comm_create_from_group",
                                    "MPI_Intercomm_create_from_groups",
                                    "MPI_Comm_idup_with_info"};

/* Persistent collectives of Open MPI 4, which has them by other names, are there by both. */
static int is_there(void* library, const char* name) {
  char extension[64];
  snprintf(extension, sizeof extension, "MPIX_%s", name + strlen("MPI_"));
  return dlsym(library, name) != NULL || (strstr(name, "_init") != NULL && dlsym(library, extension) != NULL);
}

int main(int argc, char** argv) {
  int rank, wrong = 0, count = sizeof names / sizeof *names, there = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Dl_info mpi;
  dladdr(dlsym(RTLD_DEFAULT, "PMPI_Init"), &mpi); /* which Laconic leaves alone */
  void* const library = dlopen(mpi.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  for (int i = 0; i < count; ++i) {
    there = is_there(library, names[i]);
    if ((dlsym(RTLD_DEFAULT, names[i]) != NULL) == there) continue;
    fprintf(stderr, "%s is %sin this MPI\n", names[i], there ? "" : "not ");
    ++wrong;
  }
  if ((MPI_Comm_idup_with_info != NULL) != there && ++wrong)
    fprintf(stderr, "a weak symbol has found what is not there\n");
  if (rank == 0 && wrong == 0) printf("%d calls, all as they should be\n", count);
  MPI_Finalize();
  return wrong != 0;
}
