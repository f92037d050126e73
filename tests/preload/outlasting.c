/* A program with a session that lasts longer than what MPI_Init began: calls over the session's communicators, and
 * those made from them, are begun on one rank before MPI_Finalize and on another after it, and persistent ones go on.
 *
 *   outlasting TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 5000, COMMS = 5 };

static int rank, size, wrong, calls;
static int x[COUNT], y[COUNT];

static void check(const char* what) {
  ++calls;
  for (int i = 0; i < COUNT; ++i) {
    if (y[i] != size * i + size * (size - 1) / 2 && wrong++ == 0) fprintf(stderr, "rank %d: %s\n", rank, what);
    y[i] = -1;
  }
}

static MPI_Session session;
static MPI_Comm comms[COMMS];

static void begin_session(void) {
  MPI_Group group;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level",
               "MPI_THREAD_MULTIPLE"); /* MPICH lets in no more than the first that begins asks for */
  MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "tests.preload.outlasting", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[0]);
  MPI_Group_free(&group);
  MPI_Comm_dup(comms[0], &comms[1]);
  MPI_Request request;
  MPI_Comm_idup(comms[0], &comms[4], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Of one group of rank 0 and one of all others, which makes a communicator of all. */
static void join_groups(void) {
  MPI_Group all, mine, others;
  MPI_Comm between;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  const int first[1] = {0};
  MPI_Group_incl(all, 1, first, rank == 0 ? &mine : &others);
  MPI_Group_excl(all, 1, first, rank == 0 ? &others : &mine);
  MPI_Intercomm_create_from_groups(mine, 0, others, 0, "tests.preload.outlasting.between", MPI_INFO_NULL,
                                   MPI_ERRORS_ARE_FATAL, &between);
  MPI_Intercomm_merge(between, rank != 0, &comms[3]);
  MPI_Comm_free(&between);
  MPI_Group_free(&all);
  MPI_Group_free(&mine);
  MPI_Group_free(&others);
}

int main(int argc, char** argv) {
  int provided;
  const int early = argc > 2;
  MPI_Comm none;
  MPI_Request kept[COMMS], late[2];
  if (early) begin_session();
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (!early) begin_session();
  MPI_Comm_rank(comms[0], &rank);
  MPI_Comm_size(comms[0], &size);
  MPI_Comm_split(comms[1], 0, 0, &comms[2]);
  MPI_Comm_split(comms[1], rank == 0 ? 0 : MPI_UNDEFINED, 0, &none);
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
  join_groups();
  for (int i = 0; i < COUNT; ++i) x[i] = rank + i;
  for (int c = 0; c < COMMS; ++c) {
    MPI_Allreduce(x, y, COUNT, MPI_INT, MPI_SUM, comms[c]);
    check("a call that blocks");
  }
  for (int c = 0; c < COMMS; ++c) {
    MPI_Allreduce_init(x, y, COUNT, MPI_INT, MPI_SUM, comms[c], MPI_INFO_NULL, &kept[c]);
    MPI_Start(&kept[c]);
    MPI_Wait(&kept[c], MPI_STATUS_IGNORE);
    check("a persistent call");
  }
  if (rank != 0) MPI_Finalize();
  static int z[COUNT];
  MPI_Iallreduce(x, y, COUNT, MPI_INT, MPI_SUM, comms[2], &late[0]);
  MPI_Iallreduce(x, z, COUNT, MPI_INT, MPI_SUM, comms[4], &late[1]);
  if (rank == 0) MPI_Finalize();
  MPI_Waitall(2, late, MPI_STATUSES_IGNORE);
  check("a call on both sides of the end");
  for (int i = 0; i < COUNT; ++i) y[i] = z[i];
  check("a call on both sides of the end, over what was duplicated without blocking");
  for (int c = 0; c < COMMS; ++c) {
    MPI_Start(&kept[c]);
    MPI_Wait(&kept[c], MPI_STATUS_IGNORE);
    check("a persistent call after the end");
    MPI_Request_free(&kept[c]);
  }
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, comms[0]);
  for (int c = 0; c < COMMS; ++c) MPI_Comm_free(&comms[c]);
  MPI_Session_finalize(&session);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  return wrong != 0;
}
