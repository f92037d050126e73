/* Some entry points of MPICH's `use mpi_f08`, whose handles are integers. */
#pragma once

#include <mpi.h>

void mpi_init_thread_f08_(const int* required, int* provided, int* code);
void mpi_finalize_f08_(int* code);
void mpi_comm_dup_f08_(const int* comm, int* made, int* code);
void mpi_comm_split_f08_(const int* comm, const int* color, const int* key, int* made, int* code);
void mpi_comm_free_f08_(int* comm, int* code);
void mpi_start_f08_(int* request, int* code);
void mpi_startall_f08_(const int* count, int* requests, int* code);
void mpi_request_free_f08_(int* request, int* code);
void pmpi_comm_dup_f08_(const int* comm, int* made, int* code);

/* Functions of keyvals as Fortran has them. */
typedef void CopyFunction(const int* comm, const int* keyval, MPI_Aint* extra, MPI_Aint* in, MPI_Aint* out, int* copied,
                          int* code);
typedef void DeleteFunction(const int* comm, const int* keyval, MPI_Aint* value, MPI_Aint* extra, int* code);
void mpi_comm_create_keyval_(CopyFunction* copy, DeleteFunction* erase, int* keyval, MPI_Aint* extra, int* code);

void mpi_allreduce_f08ts_(const void* x, void* y, const int* n, const int* type, const int* op, const int* comm,
                          int* code);
void mpi_iallreduce_f08ts_(const void* x, void* y, const int* n, const int* type, const int* op, const int* comm,
                           int* request, int* code);
void mpi_allreduce_init_f08ts_(const void* x, void* y, const int* n, const int* type, const int* op, const int* comm,
                               const int* info, int* request, int* code);
