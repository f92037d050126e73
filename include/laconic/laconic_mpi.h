/* Laconic communicators over MPI. Apart from laconic.h, so that only those who need it include mpi.h. Link
 * liblaconic-openmpi or liblaconic-mpich, whichever MPI the program uses. */
#ifndef LACONIC_LACONIC_MPI_H
#define LACONIC_LACONIC_MPI_H

#include <laconic/laconic.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over `mpi`, which is duplicated and may be freed afterwards. Free the result with laconic_comm_free before
 * MPI_Finalize. On failure *comm is NULL. An intercommunicator is LACONIC_INVALID_ARGUMENT, and so is any before
 * MPI_Init (but for those of MPI sessions) and after MPI_Finalize; a mistake in one rank's environment is one on every
 * rank. Waits for the other ranks as MPI does, whatever LACONIC_TIMEOUT says. */
int laconic_comm_from_mpi(MPI_Comm mpi, laconic_comm** comm);

#ifdef __cplusplus
}
#endif

#endif
