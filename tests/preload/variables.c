/* A tool within a program: reads Laconic's performance variables through MPI_T, among those of the MPI library.
 *
 *   variables TOLERANCE
 *
 * Prints "N calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 100000, ROUNDS = 3, TEXT = 256 };

static int rank, wrong;
static float x[COUNT], y[COUNT];

#define EXPECT(condition)                                                                        \
  do {                                                                                           \
    if (!(condition) && wrong++ < 5) fprintf(stderr, "rank %d: not so: %s\n", rank, #condition); \
  } while (0)

static MPI_T_pvar_session session;

/* The number of a variable by looking through all, as tools do; -1 if there is none. */
static int search(const char* wanted, int* var_class, MPI_Datatype* type) {
  int n = 0;
  MPI_T_pvar_get_num(&n);
  for (int i = 0; i < n; ++i) {
    char name[TEXT], text[TEXT];
    int name_size = TEXT, text_size = TEXT, verbosity, bind, readonly, continuous, atomic;
    MPI_T_enum enumeration;
    if (MPI_T_pvar_get_info(i, name, &name_size, &verbosity, var_class, type, &enumeration, text, &text_size, &bind,
                            &readonly, &continuous, &atomic) != MPI_SUCCESS)
      continue;
    if (strcmp(name, wanted) != 0) continue;
    EXPECT(name_size == (int)strlen(name) + 1 && text_size == (int)strlen(text) + 1);
    EXPECT(readonly == 1 && continuous == 1 && bind == MPI_T_BIND_NO_OBJECT);
    int index = -1;
    EXPECT(MPI_T_pvar_get_index(wanted, *var_class, &index) == MPI_SUCCESS && index == i);
    return i;
  }
  return -1;
}

static double read_value(const char* name) {
  int var_class, count = 0;
  MPI_Datatype type;
  const int index = search(name, &var_class, &type);
  MPI_T_pvar_handle handle;
  union {
    unsigned long long count;
    double number;
  } value = {0};
  if (index < 0 || MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS) {
    fprintf(stderr, "rank %d: there is no %s\n", rank, name);
    ++wrong;
    return -1;
  }
  EXPECT(count == 1);
  EXPECT(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS);
  EXPECT(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
  EXPECT(MPI_T_pvar_write(session, handle, &value) == MPI_T_ERR_PVAR_NO_WRITE);
  EXPECT(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE);
  EXPECT(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS && handle == MPI_T_PVAR_HANDLE_NULL);
  return type == MPI_DOUBLE ? value.number : (double)value.count;
}

/* The MPI library's own are where they were: each that has a name is found by it. */
static void look_at_all(void) {
  int n = 0, ours = 0;
  EXPECT(MPI_T_pvar_get_num(&n) == MPI_SUCCESS);
  for (int i = 0; i < n; ++i) {
    char name[TEXT];
    int name_size = TEXT, var_class = 0, index = -1;
    if (MPI_T_pvar_get_info(i, name, &name_size, NULL, &var_class, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) !=
        MPI_SUCCESS)
      continue;
    ours += strncmp(name, "laconic_", 8) == 0;
    EXPECT(MPI_T_pvar_get_index(name, var_class, &index) == MPI_SUCCESS && index == i);
  }
  EXPECT(ours == 81);
  char small[8];
  int room = sizeof small, index = -1;
  EXPECT(MPI_T_pvar_get_index("laconic_calls", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
  EXPECT(MPI_T_pvar_get_info(index, small, &room, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
         MPI_SUCCESS);
  EXPECT(strcmp(small, "laconic") == 0 && room == (int)sizeof "laconic_calls");
  EXPECT(MPI_T_pvar_get_index("laconic_calls", MPI_T_PVAR_CLASS_TIMER, &index) != MPI_SUCCESS);
  EXPECT(MPI_T_pvar_get_index("laconic_nothing", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS);
}

int main(int argc, char** argv) {
  int provided, size, n = 0;
  if (argc < 2) return 2;
  EXPECT(MPI_T_pvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_T_pvar_session_create(&session);
  look_at_all();
  EXPECT(read_value("laconic_calls") == 0);

  for (int i = 0; i < COUNT; ++i) x[i] = (float)(i % 1000) * 0.01F;
  for (int round = 0; round < ROUNDS; ++round) MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Bcast(x, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD);

  EXPECT(read_value("laconic_calls") == ROUNDS + 1);
  EXPECT(read_value("laconic_allreduce_calls") == ROUNDS);
  EXPECT(read_value("laconic_allreduce_plain_calls") == 0);
  EXPECT(read_value("laconic_gather_calls") == 0);
  const double original = read_value("laconic_allreduce_original_bytes"),
               wire = read_value("laconic_allreduce_wire_bytes");
  EXPECT(wire > 0 && original > 1.5 * wire);
  const double seconds = read_value("laconic_seconds"), codec = read_value("laconic_codec_seconds");
  EXPECT(seconds > 0 && codec > 0 && codec <= seconds);
  EXPECT(read_value("laconic_verified_elements") >= ROUNDS * COUNT);
  const double error = read_value("laconic_worst_error_over_bound");
  EXPECT(error > 0 && error <= 1);

  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#ifdef OPEN_MPI /* Open MPI 4.1 ends with a segmentation fault where MPI_T outlives MPI */
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  MPI_Finalize();
#else
  MPI_Finalize();
  EXPECT(read_value("laconic_allreduce_calls") == ROUNDS);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
#endif
  if (rank == 0 && all == 0 && wrong == 0) printf("%d calls, all as they should be\n", ROUNDS + 1);
  return wrong != 0;
}
