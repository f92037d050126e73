/* A program that makes mistakes, and whose error handlers return: what it hears of them is what MPI alone would say,
 * and its other calls go on. And what it keeps with its datatypes is not touched.
 *
 *   errors TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/sleeping.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define GATHERV_INIT MPIX_Gatherv_init
#define PGATHERV_INIT PMPIX_Gatherv_init
#define ALLREDUCE_INIT MPIX_Allreduce_init
#define PALLREDUCE_INIT PMPIX_Allreduce_init
#else
#define GATHERV_INIT MPI_Gatherv_init
#define PGATHERV_INIT PMPI_Gatherv_init
#define ALLREDUCE_INIT MPI_Allreduce_init
#define PALLREDUCE_INIT PMPI_Allreduce_init
#endif

/* Of MPI 1: headers have it no longer, libraries do. */
int set_errhandler_as_before(MPI_Comm comm, MPI_Errhandler handler) __asm__("MPI_Errhandler_set");
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5 /* Fortran's: here it is the drop-in's alone */
void set_errhandler_in_fortran(const MPI_Fint* comm, const MPI_Fint* handler,
                               MPI_Fint* code) __asm__("mpi_errhandler_set_") __attribute__((weak));
#endif

enum { COUNT = 5000, ROUNDS = 20 };

static int rank, size, wrong, calls, heard, heard_class, copied;
static double tolerance;
static MPI_Comm heard_of;
static float x[2 * COUNT], y[2 * COUNT];
static int *counts, *places;

static void expect(int good, const char* what) {
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "rank %d: %s\n", rank, what);
}

static void hear(MPI_Comm* comm, int* code, ...) {
  ++heard;
  heard_of = *comm;
  MPI_Error_class(*code, &heard_class);
}

static int class_of(int code) {
  int class;
  MPI_Error_class(code, &class);
  return class;
}

static int wait_for(int code, MPI_Request* request) {
  return code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

/* A call that is right, over a communicator that has seen mistakes. */
static void go_on(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  for (int i = 0; i < COUNT; ++i) x[i] = rank == 0 ? (float)i : -1;
  MPI_Ibcast(x, COUNT, MPI_FLOAT, 0, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int good = 1;
  for (int i = 0; i < COUNT; ++i) good = good && x[i] >= (float)i - tolerance && x[i] <= (float)i + tolerance;
  expect(good, "ibcast after a mistake");
}

/* The handler changes between calls that do not block: each time the one of now is called, with the communicator. */
static void handlers(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  go_on(comm);
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  for (int r = 0; r < size; ++r) counts[r] = -5;
  heard = 0;
  wait_for(MPI_Igatherv(x, -5, MPI_FLOAT, y, counts, places, MPI_FLOAT, 0, comm, &request), &request);
  expect(heard == 1 && heard_of == comm && heard_class == MPI_ERR_COUNT, "the handler did not hear of negative counts");
  set_errhandler_as_before(comm, MPI_ERRORS_RETURN);
  const int code = wait_for(MPI_Igatherv(x, -5, MPI_FLOAT, y, counts, places, MPI_FLOAT, 0, comm, &request), &request);
  expect(heard == 1 && class_of(code) == MPI_ERR_COUNT, "negative counts do not come back as an error");
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
  const MPI_Fint it = MPI_Comm_c2f(comm), its = MPI_Errhandler_c2f(handler);
  MPI_Fint set = MPI_ERR_OTHER;
  MPI_Datatype type;
  if (set_errhandler_in_fortran != NULL) set_errhandler_in_fortran(&it, &its, &set);
  expect(set == MPI_SUCCESS, "MPI_ERRHANDLER_SET of Fortran");
  heard = 0;
  MPI_Type_vector(COUNT, 1, 2, MPI_FLOAT, &type);
  wait_for(MPI_Ibcast(x, 1, type, 0, comm, &request), &request); /* over a communicator of Laconic's */
  expect(heard == 1 && heard_of == comm, "the handler that Fortran has set did not hear of an uncommitted type");
  MPI_Type_free(&type);
#endif
  MPI_Errhandler_free(&handler);
  go_on(comm);
  MPI_Comm_free(&comm);
}

/* Begins a call over comm that fails, as ranks do not agree on its count, when the last rank has come to it: that waits
 * until all others have done what they do to the call's communicator while it is under way. */
static void begin_one_that_fails(MPI_Comm comm, MPI_Request* request) {
  if (rank == size - 1) sleeping_barrier();
  expect(MPI_Iallreduce(x, y, COUNT - rank, MPI_FLOAT, MPI_SUM, comm, request) == MPI_SUCCESS, "begun, not to succeed");
}

static void expect_that_it_fails(MPI_Request* request, const char* what) {
  if (rank != size - 1) sleeping_barrier();
  expect(MPI_Wait(request, MPI_STATUS_IGNORE) != MPI_SUCCESS, what);
}

/* Of an error it hears who is the handler then. */
static void handlers_of_what_is_under_way(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request request = MPI_REQUEST_NULL;
  if (size == 1) return;
  MPI_Comm_create_errhandler(hear, &handler);
  for (int user = 0; user < 2; ++user) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* with the handler that ends the program */
    go_on(comm);
    if (user) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    heard = 0;
    const MPI_Errhandler now = user ? handler : MPI_ERRORS_RETURN;
    if (rank == size - 1) MPI_Comm_set_errhandler(comm, now);
    begin_one_that_fails(comm, &request);
    MPI_Comm_set_errhandler(comm, now);
    expect_that_it_fails(&request, "a call of other counts");
    expect(heard == user && (!user || heard_of == comm), "not the handler of now heard of it");
    MPI_Comm_free(&comm);
  }
  MPI_Errhandler_free(&handler);
}

/* A tool frees communicators past this library while a call is under way. */
static void freed_past(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request request = MPI_REQUEST_NULL;
  if (size == 1) return;
  MPI_Comm_create_errhandler(hear, &handler);
  for (int user = 0; user < 2; ++user) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    go_on(comm);
    MPI_Comm_set_errhandler(comm, user ? handler : MPI_ERRORS_RETURN);
    heard = 0;
    begin_one_that_fails(comm, &request);
    PMPI_Comm_free(&comm);
    expect_that_it_fails(&request, "a call over what has been freed");
    expect(heard == user, "the handler of what has been freed did not hear of it once");
    go_on(MPI_COMM_WORLD);
  }
  MPI_Errhandler_free(&handler);
}

#ifdef OPEN_MPI /* MPICH holds a lock of the communicator's while its handler runs */
static atomic_int all_have_begun;

static void free_it(MPI_Comm* comm, int* code, ...) {
  MPI_Comm it = *comm;
  while (!all_have_begun) usleep(1000);
  hear(comm, code);
  if (heard == 1) MPI_Comm_free(&it); /* what comes later is over a communicator of Laconic's */
}

/* A handler frees the communicator of a call that does not block, whose ranks disagree. */
static void freed_by_a_handler(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request requests[3], next = MPI_REQUEST_NULL;
  if (size == 1) return;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  go_on(comm);
  MPI_Comm_create_errhandler(free_it, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  heard = 0;
  for (int i = 0; i < 3; ++i) MPI_Iallreduce(x, y, COUNT - rank - i, MPI_FLOAT, MPI_SUM, comm, &requests[i]);
  all_have_begun = 1;
  expect(MPI_Wait(&requests[0], MPI_STATUS_IGNORE) != MPI_SUCCESS, "a sum of different counts");
  for (int i = 1; i < 3; ++i)
    expect(MPI_Wait(&requests[i], MPI_STATUS_IGNORE) != MPI_SUCCESS, "one that came after the communicator had gone");
  expect(heard == 3, "the handler did not hear of each once");
  MPI_Ibcast(y, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD, &next);
  MPI_Wait(&next, MPI_STATUS_IGNORE);
  go_on(MPI_COMM_WORLD);
}
#else /* Open MPI's communicators are pointers: what has been freed cannot be told */
static void expect_once(const char* what) {
  expect(heard == 1 && heard_class == MPI_ERR_COMM, what);
  heard = 0;
}

/* Calls over a communicator that is gone: the handler hears of each once. */
static void gone(void) {
  MPI_Errhandler handler;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm comm, made;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm copy = comm;
  MPI_Comm_free(&copy);
  heard = 0;
  for (int r = 0; r < size; ++r) counts[r] = 1;
  MPI_Bcast(x, COUNT, MPI_FLOAT, 0, comm);
  expect_once("a bcast over what is gone");
  MPI_Allgather(x, COUNT / size, MPI_FLOAT, y, COUNT / size, MPI_FLOAT, comm);
  expect_once("an allgather over what is gone");
  MPI_Gatherv(x, 1, MPI_FLOAT, y, counts, places, MPI_FLOAT, 0, comm);
  expect_once("a gatherv over what is gone");
  MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
  expect_once("an iallreduce over what is gone");
  MPI_Comm_dup(comm, &made);
  expect_once("a dup of what is gone");
  MPI_Comm_free(&comm);
  expect_once("what is gone, freed again");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  go_on(MPI_COMM_WORLD);
}
#endif

static void uncommitted(void) {
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Type_vector(COUNT, 1, 2, MPI_FLOAT, &type);
  for (int r = 0; r < size; ++r) counts[r] = 1;
  expect(class_of(MPI_Bcast(x, 1, type, 0, comm)) == MPI_ERR_TYPE, "bcast of an uncommitted type");
  expect(class_of(wait_for(MPI_Ibcast(x, 1, type, 0, comm, &request), &request)) == MPI_ERR_TYPE,
         "ibcast of an uncommitted type");
  expect(class_of(wait_for(MPI_Igatherv(x, 1, type, y, counts, places, type, 0, comm, &request), &request)) ==
             MPI_ERR_TYPE,
         "igatherv of an uncommitted type");
  MPI_Type_commit(&type);
  for (int i = 0; i < 2 * COUNT; ++i) x[i] = rank == 0 ? (float)i : -1;
  MPI_Bcast(x, 1, type, 0, comm);
  int good = 1;
  for (int i = 0; i < 2 * COUNT; i += 2) good = good && x[i] >= (float)i - tolerance && x[i] <= (float)i + tolerance;
  expect(good, "bcast of a type that has been committed since");
  MPI_Type_free(&type);
  go_on(comm);
  MPI_Comm_free(&comm);
}

/* What is no type at all: the handler of the communicator alone hears of it. */
static void no_type(void) {
  MPI_Comm comm;
  MPI_Datatype none = (MPI_Datatype)0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
#ifndef OPEN_MPI /* whose version 4 tells MPI_COMM_WORLD's */
  for (int r = 0; r < size; ++r) counts[r] = 1;
  expect(class_of(MPI_Bcast(x, COUNT, none, 0, comm)) == MPI_ERR_TYPE, "bcast of no type");
  expect(class_of(MPI_Gatherv(x, 1, none, y, counts, places, none, 0, comm)) == MPI_ERR_TYPE, "gatherv of no type");
  expect(MPI_Bcast(x, 0, none, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "MPICH's bcast of nothing of no type");
#else
  (void)none;
#endif
  go_on(comm);
  MPI_Comm_free(&comm);
}

/* Places that are none. */
static void misplaced(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  expect(class_of(MPI_Allreduce(x, MPI_IN_PLACE, COUNT, MPI_FLOAT, MPI_SUM, comm)) ==
             class_of(PMPI_Allreduce(x, MPI_IN_PLACE, COUNT, MPI_FLOAT, MPI_SUM, comm)),
         "an allreduce whose result is in place");
  expect(class_of(MPI_Allreduce(x, x, COUNT, MPI_FLOAT, MPI_SUM, comm)) ==
             class_of(PMPI_Allreduce(x, x, COUNT, MPI_FLOAT, MPI_SUM, comm)),
         "an allreduce of one array that is not in place");
  if (rank == 0) /* where it ends at once, and others would be waited for */
    expect(class_of(MPI_Reduce(x, x, COUNT, MPI_FLOAT, MPI_SUM, 0, comm)) ==
               class_of(PMPI_Reduce(x, x, COUNT, MPI_FLOAT, MPI_SUM, 0, comm)),
           "a reduce of one array that is not in place");
#ifdef MPICH_VERSION /* Open MPI itself ends there */
  expect(class_of(MPI_Comm_free(NULL)) == class_of(PMPI_Comm_free(NULL)), "no communicator, freed");
  expect(class_of(MPI_Comm_disconnect(NULL)) == class_of(PMPI_Comm_disconnect(NULL)), "no communicator, left");
#endif
  expect(class_of(MPI_Query_thread(NULL)) == class_of(PMPI_Query_thread(NULL)), "a level of threads for nobody");
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_MAX, comm);
  go_on(comm);
  MPI_Comm_free(&comm);
}

/* A call of this rank alone, which MPI refuses at once, has the error that MPI says, and waits for nobody. */
#define REFUSED(name, ...) \
  expect(class_of(P##name(__VA_ARGS__)) == class_of(name(__VA_ARGS__)), "refused: " #name "(" #__VA_ARGS__ ")")

static void refused_alone(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype none = MPI_DATATYPE_NULL, raw;
  int* const negative = calloc((size_t)size, sizeof *negative);
  if (negative == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int r = 0; r < size; ++r) negative[r] = r == size - 1 ? -1 : 1;
  MPI_Type_contiguous(2, MPI_FLOAT, &raw);
  REFUSED(MPI_Gatherv, x, 7, MPI_FLOAT, y, negative, places, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Gatherv, x, 7, MPI_FLOAT, y, counts, places, none, rank, comm);
  REFUSED(MPI_Gatherv, x, 7, raw, y, counts, places, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Gatherv, x, 7, MPI_FLOAT, y, counts, places, MPI_FLOAT, size, comm);
  REFUSED(MPI_Gatherv, x, 7, MPI_FLOAT, MPI_IN_PLACE, counts, places, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Igatherv, x, 7, MPI_FLOAT, y, negative, places, MPI_FLOAT, rank, comm, &request);
  REFUSED(MPI_Scatterv, x, counts, places, MPI_FLOAT, y, -7, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Scatterv, x, counts, places, raw, y, 7, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Scatterv, MPI_IN_PLACE, counts, places, MPI_FLOAT, y, 7, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Alltoallv, x, counts, places, MPI_FLOAT, y, negative, places, MPI_FLOAT, comm);
  REFUSED(MPI_Alltoallv, x, counts, places, MPI_FLOAT, y, counts, places, raw, comm);
  REFUSED(MPI_Alltoallv, x, counts, places, MPI_FLOAT, MPI_IN_PLACE, counts, places, MPI_FLOAT, comm);
  REFUSED(MPI_Ialltoallv, x, counts, places, MPI_FLOAT, MPI_IN_PLACE, counts, places, MPI_FLOAT, comm, &request);
  REFUSED(MPI_Reduce, x, x, 7, MPI_FLOAT, MPI_SUM, rank, comm);
  REFUSED(MPI_Allreduce, x, x, 2, MPI_FLOAT, MPI_SUM, comm);
  REFUSED(MPI_Iallreduce, x, x, 2, MPI_FLOAT, MPI_SUM, comm, &request);
  REFUSED(GATHERV_INIT, x, 7, MPI_FLOAT, y, negative, places, MPI_FLOAT, rank, comm, MPI_INFO_NULL, &request);
  REFUSED(ALLREDUCE_INIT, x, x, 2, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
#ifdef OPEN_MPI
  REFUSED(MPI_Gatherv, x, 7, MPI_FLOAT, y, NULL, places, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Gatherv, x, 7, MPI_FLOAT, y, counts, NULL, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Gatherv, MPI_IN_PLACE, 7, MPI_FLOAT, NULL, NULL, NULL, none, (rank + 1) % size, comm);
  REFUSED(MPI_Alltoallv, x, counts, places, MPI_FLOAT, y, counts, NULL, MPI_FLOAT, comm);
#else
  int* const too = calloc((size_t)size, sizeof *too);
  if (too == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  REFUSED(MPI_Gatherv, x + 7 * rank, 7, MPI_FLOAT, x, counts, places, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Gatherv, NULL, 7, MPI_FLOAT, y, counts, places, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Gatherv, x, 7, MPI_FLOAT, NULL, counts, places, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Igatherv, x + 7 * rank, 7, MPI_FLOAT, x, counts, places, MPI_FLOAT, rank, comm, &request);
  REFUSED(MPI_Scatterv, x, counts, places, MPI_FLOAT, x + 7 * rank, 7, MPI_FLOAT, rank, comm);
  REFUSED(MPI_Alltoallv, x, counts, places, MPI_FLOAT, x, counts, places, MPI_FLOAT, comm);
  REFUSED(MPI_Alltoallv, NULL, too, places, MPI_FLOAT, NULL, too, places, MPI_FLOAT, comm);
  REFUSED(MPI_Ialltoallv, x, counts, places, MPI_FLOAT, x, counts, places, MPI_FLOAT, comm, &request);
  REFUSED(MPI_Alltoall, x, 7, MPI_FLOAT, x, 7, MPI_FLOAT, comm);
  REFUSED(MPI_Allgather, x + 7 * rank, 7, MPI_FLOAT, x, 7, MPI_FLOAT, comm);
  counts[0] = 0;
  REFUSED(MPI_Reduce_scatter, x, x, counts, MPI_FLOAT, MPI_SUM, comm);
  free(too);
#endif
  MPI_Type_free(&raw);
  free(negative);
}

static void refused(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int round = 0; round < 2; ++round) {
    for (int r = 0; r < size; ++r) counts[r] = 7, places[r] = 7 * r;
    if (rank == round) refused_alone(comm);
    for (int r = 0; r < size; ++r) counts[r] = 7, places[r] = 7 * r;
    for (int i = 0; i < 7 * size; ++i) x[i] = (float)rank, y[i] = -9;
    MPI_Alltoallv(x, counts, places, MPI_FLOAT, y, counts, places, MPI_FLOAT, comm);
    int good = 1;
    for (int i = 0; i < 7 * size; ++i)
      good = good && y[i] >= (float)(i / 7) - tolerance && y[i] <= (float)(i / 7) + tolerance;
    expect(good, "alltoallv after calls of one rank that were refused");
    go_on(comm);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

/* Collectives cannot be cancelled. */
static void cancelled(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int flag = 0;
    x[COUNT - 1] = rank == 0 ? (float)round : -1;
    MPI_Ibcast(x, COUNT, MPI_FLOAT, 0, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    expect(!flag && x[COUNT - 1] >= (float)round - tolerance && x[COUNT - 1] <= (float)round + tolerance,
           "an ibcast has been cancelled");
  }
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

static int copy(MPI_Datatype type, int key, void* extra, void* value, void* out, int* flag) {
  (void)type, (void)key, (void)extra, (void)value, (void)out;
  ++copied;
  *flag = 0;
  return MPI_SUCCESS;
}

static void attributes(void) {
  int key;
  MPI_Datatype type;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Type_create_keyval(copy, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
  MPI_Type_vector(COUNT, 1, 2, MPI_FLOAT, &type);
  MPI_Type_commit(&type);
  MPI_Type_set_attr(type, key, &key);
  MPI_Ibcast(x, 1, type, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(copied == 0, "a datatype's attributes were copied behind the program's back");
  MPI_Type_free(&type);
  MPI_Type_free_keyval(&key);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  counts = calloc((size_t)size, sizeof *counts);
  places = calloc((size_t)size, sizeof *places);
  if (counts == NULL || places == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  handlers();
  handlers_of_what_is_under_way();
  freed_past();
#ifdef OPEN_MPI
  freed_by_a_handler();
#else
  gone();
#endif
  uncommitted();
  no_type();
  misplaced();
  refused();
  cancelled();
  attributes();
  free(counts);
  free(places);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
