/* A program that never calls MPI_Init: its communicator comes from a session (MPI-4), twice. *
 *   sessions TOLERANCE [TIMES [held]]
 *
 * held: another session stays open all the while, so that MPI does not end between two. Prints "calls, all as they
 * should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 20011 };

static float x[COUNT], y[COUNT];

/* Elements that are wrong. */
static int once(double tolerance, int* rank) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int size, wrong = 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "tests.preload.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < COUNT; ++i) x[i] = (float)(sin(1e-3 * i) + *rank);
  MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm);
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, y, COUNT, MPI_FLOAT, MPI_MAX, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < COUNT; ++i) {
    const double want = size * sin(1e-3 * i) + size * (size - 1) / 2.0;
    if (fabs(y[i] - want) > 2 * tolerance + 1e-4 && wrong++ == 0)
      fprintf(stderr, "rank %d: element %d is %.9g, not %.9g\n", *rank, i, y[i], want);
  }
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, comm);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  return all;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int times = argc > 2 ? atoi(argv[2]) : 2;
  const int held = argc > 3 && strcmp(argv[3], "held") == 0;
  int rank = 0, wrong = 0;
  MPI_Session outer;
  if (held) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &outer);
  for (int i = 0; i < times; ++i) wrong += once(atof(argv[1]), &rank);
  if (held) MPI_Session_finalize(&outer);
  if (rank == 0 && wrong == 0) printf("%d calls, all as they should be\n", 2 * times);
  return wrong != 0;
}
