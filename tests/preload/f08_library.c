/* Stands in for MPICH's Fortran library (see f08.c): what has a buffer calls MPI's function for C, everything else the
 * one for tools. */
#include <stddef.h>

#include "f08.h"

/* MPI's own, by which its library for Fortran says how a keyval's functions are called. */
typedef int CopyProxy(MPI_Comm_copy_attr_function* copy, int comm, int keyval, void* extra, int kind, void* in,
                      void** out, int* copied);
typedef int DeleteProxy(MPI_Comm_delete_attr_function* erase, int comm, int keyval, int kind, void* value, void* extra);
void MPII_Keyval_set_proxy(int keyval, CopyProxy* copy, DeleteProxy* erase);

static void give(int* code, int result) {
  if (code != NULL) *code = result; /* it is optional */
}

void mpi_init_thread_f08_(const int* required, int* provided, int* code) {
  give(code, PMPI_Init_thread(NULL, NULL, *required, provided));
}
void mpi_finalize_f08_(int* code) { give(code, PMPI_Finalize()); }
void mpi_comm_dup_f08_(const int* comm, int* made, int* code) { give(code, PMPI_Comm_dup(*comm, made)); }
void mpi_comm_split_f08_(const int* comm, const int* color, const int* key, int* made, int* code) {
  give(code, PMPI_Comm_split(*comm, *color, *key, made));
}
void mpi_comm_free_f08_(int* comm, int* code) { give(code, PMPI_Comm_free(comm)); }
void mpi_start_f08_(int* request, int* code) { give(code, PMPI_Start(request)); }
void mpi_startall_f08_(const int* count, int* requests, int* code) { give(code, PMPI_Startall(*count, requests)); }
void mpi_request_free_f08_(int* request, int* code) { give(code, PMPI_Request_free(request)); }
void pmpi_comm_dup_f08_(const int* comm, int* made, int* code) { give(code, PMPI_Comm_dup(*comm, made)); }

static int copy_as_fortran(MPI_Comm_copy_attr_function* copy, int comm, int keyval, void* extra, int kind, void* in,
                           void** out, int* copied) {
  MPI_Aint from = (MPI_Aint)in, to = 0, more = (MPI_Aint)extra;
  int code = -1;
  (void)kind;
  ((CopyFunction*)(void (*)(void))copy)(&comm, &keyval, &more, &from, &to, copied, &code);
  *out = (void*)to;
  return code;
}
static int delete_as_fortran(MPI_Comm_delete_attr_function* erase, int comm, int keyval, int kind, void* value,
                             void* extra) {
  MPI_Aint its = (MPI_Aint)value, more = (MPI_Aint)extra;
  int code = -1;
  (void)kind;
  ((DeleteFunction*)(void (*)(void))erase)(&comm, &keyval, &its, &more, &code);
  return code;
}
void mpi_comm_create_keyval_(CopyFunction* copy, DeleteFunction* erase, int* keyval, MPI_Aint* extra, int* code) {
  give(code, MPI_Comm_create_keyval((MPI_Comm_copy_attr_function*)(void (*)(void))copy,
                                    (MPI_Comm_delete_attr_function*)(void (*)(void))erase, keyval, (void*)*extra));
  MPII_Keyval_set_proxy(*keyval, copy_as_fortran, delete_as_fortran);
}

void mpi_allreduce_f08ts_(const void* x, void* y, const int* n, const int* type, const int* op, const int* comm,
                          int* code) {
  give(code, MPI_Allreduce(x, y, *n, *type, *op, *comm));
}
void mpi_iallreduce_f08ts_(const void* x, void* y, const int* n, const int* type, const int* op, const int* comm,
                           int* request, int* code) {
  give(code, MPI_Iallreduce(x, y, *n, *type, *op, *comm, request));
}
void mpi_allreduce_init_f08ts_(const void* x, void* y, const int* n, const int* type, const int* op, const int* comm,
                               const int* info, int* request, int* code) {
  give(code, MPI_Allreduce_init(x, y, *n, *type, *op, *comm, *info, request));
}
