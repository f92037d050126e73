/* Waits in which ranks sleep: in MPI's own they keep a processor busy, for seconds where they wait for timeouts. */
#pragma once

#include <mpi.h>
#include <unistd.h>

static inline void sleep_until_done(MPI_Request* request) {
  int done = 0;
  while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) usleep(1000);
}

static inline void sleeping_barrier(void) {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  sleep_until_done(&request);
}
