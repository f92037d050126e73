/* A program that mixes everything, as a seed has it: collectives in every form and layout, over communicators that come
 * and go while calls are under way, completed in every way that MPI has and in another order on each rank, by several
 * threads. Small whole numbers only, so every result is exact.
 *
 *   mixture 0 [STEPS [SEED [THREADS]]]
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { SLOTS = 10, COMMS = 4, MOST = 4000, BASES = 4, GAP = 0x5a, ALL = -1 };
enum kind {
  ALLREDUCE,
  REDUCE,
  REDUCE_SCATTER,
  REDUCE_SCATTER_BLOCK,
  BCAST,
  SCATTER,
  SCATTERV,
  GATHER,
  GATHERV,
  ALLGATHER,
  ALLGATHERV,
  ALLTOALL,
  ALLTOALLV,
  KINDS
};
static const char* const names[KINDS] = {
    "allreduce", "reduce",  "reduce_scatter", "reduce_scatter_block", "bcast",    "scatter",  "scatterv",
    "gather",    "gatherv", "allgather",      "allgatherv",           "alltoall", "alltoallv"};
enum form { BLOCKING, NONBLOCKING, PERSISTENT };
enum state { EMPTY, UNDER_WAY, DONE };

/* Blocks of elements, with gaps between them and between the elements. */
struct side {
  char *memory, *wanted;
  size_t bytes;
  MPI_Datatype type; /* of one element */
  size_t apart;      /* bytes from one element to the next */
  int *counts, *places;
};

struct call {
  enum state state;
  enum kind kind;
  enum form form;
  int comm; /* this, form and kind are the same on all ranks, those without the communicator too */
  int id, rank, size, root, in_place, base, op, count, gap;
  struct side send, recv;
  MPI_Request request;
};

struct job {
  int thread, steps, wrong, calls;
  unsigned common, own; /* states of random numbers: the same on all ranks; this rank's */
  MPI_Comm comms[COMMS];
  struct call slots[SLOTS];
};

static MPI_Op own_sum;

static unsigned draw(unsigned* state, unsigned below) {
  *state = *state * 1664525U + 1013904223U;
  return (*state >> 8) % below;
}

static const MPI_Datatype* bases(void) {
  static MPI_Datatype all[BASES];
  all[0] = MPI_INT, all[1] = MPI_FLOAT, all[2] = MPI_DOUBLE, all[3] = MPI_SHORT;
  return all;
}

static size_t bytes_of(int base) { return base == 2 ? sizeof(double) : base == 3 ? sizeof(short) : sizeof(int); }

static void put(int base, char* at, double value) {
  if (base == 0) *(int*)at = (int)value;
  if (base == 1) *(float*)at = (float)value;
  if (base == 2) *(double*)at = value;
  if (base == 3) *(short*)at = (short)value;
}

static double get(int base, const char* at) {
  if (base == 0) return *(const int*)at;
  if (base == 1) return *(const float*)at;
  return base == 2 ? *(const double*)at : *(const short*)at;
}

/* What rank `from` has for rank `to`, at i. */
static double value(const struct call* c, int from, int to, int i) {
  return (c->id * 7 + from * 131 + to * 17 + i) % 1000;
}

static double combined(const struct call* c, int to, int i) {
  double all = value(c, 0, to, i);
  for (int r = 1; r < c->size; ++r) {
    const double one = value(c, r, to, i);
    all = c->op == 1 ? fmin(all, one) : c->op == 2 ? fmax(all, one) : all + one;
  }
  return all;
}

static int is_reduction(enum kind kind) { return kind <= REDUCE_SCATTER_BLOCK; }
static int is_irregular(enum kind kind) {
  return kind == REDUCE_SCATTER || kind == SCATTERV || kind == GATHERV || kind == ALLGATHERV || kind == ALLTOALLV;
}

/* Elements that `from` has for `to`, where they differ. */
static int share(const struct call* c, int from, int to) {
  if (!is_irregular(c->kind)) return c->count;
  const int which = c->kind == SCATTERV || c->kind == REDUCE_SCATTER ? to : c->kind == ALLTOALLV ? from + to : from;
  const int less = (which + c->id) % 3;
  return less == 0 || c->count < less ? 0 : c->count - less;
}

static int sends_blocks(enum kind k) {
  return k == SCATTER || k == SCATTERV || k == ALLTOALL || k == ALLTOALLV || k == REDUCE_SCATTER ||
         k == REDUCE_SCATTER_BLOCK;
}
static int receives_blocks(enum kind k) { return k >= GATHER; }
static int is_rooted(enum kind k) { return k == REDUCE || (k >= BCAST && k <= GATHERV); }

static void put_block(const struct call* c, const struct side* s, char* memory, int block, int from, int to) {
  for (int i = 0; i < share(c, from, to); ++i) {
    const double one = from == ALL ? combined(c, to, i) : value(c, from, to, i);
    put(c->base, memory + (size_t)(s->places[block] + i) * s->apart, one);
  }
}

/* Blocks as `from` has them, or as `to` gets them. */
static void place_blocks(const struct call* c, struct side* s, int sent) {
  int place = 0;
  for (int r = 0; r < c->size; ++r) {
    s->counts[r] = sent ? share(c, c->rank, r) : share(c, r, c->rank);
    s->places[r] = place;
    place += c->kind == REDUCE_SCATTER ? s->counts[r] : c->count + c->gap;
  }
}

static void make_side(struct call* c, struct side* s, int apart, int sent) {
  s->apart = bytes_of(c->base) * (size_t)apart;
  s->counts = malloc((size_t)c->size * sizeof(int));
  s->places = malloc((size_t)c->size * sizeof(int));
  place_blocks(c, s, sent);
  s->bytes = (size_t)(c->size * (c->count + c->gap) + 1) * s->apart;
  s->memory = malloc(s->bytes);
  s->wanted = malloc(s->bytes);
  memset(s->memory, GAP, s->bytes);
  s->type = bases()[c->base];
  if (apart == 1) return;
  MPI_Type_create_resized(bases()[c->base], 0, (MPI_Aint)s->apart, &s->type);
  MPI_Type_commit(&s->type);
}

static void free_side(struct side* s) {
  free(s->memory);
  free(s->wanted);
  free(s->counts);
  free(s->places);
}

static void free_types(struct call* c) {
  if (c->send.type != bases()[c->base]) MPI_Type_free(&c->send.type);
  if (c->recv.type != bases()[c->base]) MPI_Type_free(&c->recv.type);
  c->send.type = c->recv.type = bases()[c->base];
}

/* What this rank gives, and what it must have afterwards. */
static void fill(struct call* c) {
  const int me = c->rank, root = me == c->root, reduces = is_reduction(c->kind),
            scatters = c->kind == SCATTER || c->kind == SCATTERV;
  struct side* const given = c->in_place && !scatters ? &c->recv : &c->send;
  memset(c->send.memory, GAP, c->send.bytes);
  memset(c->recv.memory, GAP, c->recv.bytes);
  if (sends_blocks(c->kind)) {
    for (int to = 0; to < c->size; ++to) put_block(c, given, given->memory, to, me, to);
  } else if (c->kind != BCAST || root) {
    put_block(c, given, given->memory, c->in_place && receives_blocks(c->kind) ? me : 0, me, 0);
  }
  memcpy(c->send.wanted, c->send.memory, c->send.bytes);
  memcpy(c->recv.wanted, c->recv.memory, c->recv.bytes);
  if (c->kind == BCAST) {
    put_block(c, &c->send, c->send.wanted, 0, c->root, 0);
  } else if (scatters) {
    if (!c->in_place) put_block(c, &c->recv, c->recv.wanted, 0, c->root, me);
  } else if (receives_blocks(c->kind)) {
    const int to = c->kind == ALLTOALL || c->kind == ALLTOALLV ? me : 0;
    for (int from = 0; from < c->size && (root || !is_rooted(c->kind)); ++from)
      put_block(c, &c->recv, c->recv.wanted, from, from, to);
  } else if (reduces && (root || c->kind != REDUCE)) {
    put_block(c, &c->recv, c->recv.wanted, 0, ALL, c->kind == ALLREDUCE || c->kind == REDUCE ? 0 : me);
  }
}

static void compare(struct job* job, const struct call* c, const struct side* s, size_t bytes) {
  if (memcmp(s->memory, s->wanted, bytes) == 0) return;
  size_t at = 0;
  while (s->memory[at] == s->wanted[at]) ++at;
  if (job->wrong++ < 3)
    fprintf(stderr,
            "thread %d, rank %d of %d: call %d, %s, form %d, root %d, type %d, op %d, %d elements %zu bytes apart, in "
            "place %d: byte %zu of what it %s\n",
            job->thread, c->rank, c->size, c->id, names[c->kind], (int)c->form, c->root, c->base, c->op, c->count,
            s->apart, c->in_place, at, s == &c->send ? "sent" : "received");
}

static void check(struct job* job, struct call* c) {
  ++job->calls;
  c->state = DONE;
  const int scratch = c->in_place && (c->kind == REDUCE_SCATTER || c->kind == REDUCE_SCATTER_BLOCK);
  compare(job, c, &c->send, c->send.bytes);
  compare(job, c, &c->recv, scratch ? (size_t)share(c, ALL, c->rank) * c->recv.apart : c->recv.bytes);
}

#define MAKE(Name, name, ...)                                       \
  (c->form == BLOCKING      ? MPI_##Name(__VA_ARGS__)               \
   : c->form == NONBLOCKING ? MPI_I##name(__VA_ARGS__, &c->request) \
                            : INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, &c->request))

static void make(struct call* c, MPI_Comm comm) {
  struct side *s = &c->send, *r = &c->recv;
  const int n = c->count, mine = share(c, c->rank, 0);
  const int got = share(c, c->root, c->rank);
  const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX, own_sum};
  const MPI_Op op = ops[c->op];
  void* const in = c->in_place ? MPI_IN_PLACE : (void*)s->memory;
  void* const out = c->in_place && (c->kind == SCATTER || c->kind == SCATTERV) ? MPI_IN_PLACE : (void*)r->memory;
  switch (c->kind) {
    case ALLREDUCE:
      MAKE(Allreduce, allreduce, in, out, n, s->type, op, comm);
      break;
    case REDUCE:
      MAKE(Reduce, reduce, in, out, n, s->type, op, c->root, comm);
      break;
    case REDUCE_SCATTER:
      MAKE(Reduce_scatter, reduce_scatter, in, out, s->counts, s->type, op, comm);
      break;
    case REDUCE_SCATTER_BLOCK:
      MAKE(Reduce_scatter_block, reduce_scatter_block, in, out, n, s->type, op, comm);
      break;
    case BCAST:
      MAKE(Bcast, bcast, s->memory, n, s->type, c->root, comm);
      break;
    case SCATTER:
      MAKE(Scatter, scatter, s->memory, n, s->type, out, n, r->type, c->root, comm);
      break;
    case SCATTERV:
      MAKE(Scatterv, scatterv, s->memory, s->counts, s->places, s->type, out, got, r->type, c->root, comm);
      break;
    case GATHER:
      MAKE(Gather, gather, in, n, s->type, out, n, r->type, c->root, comm);
      break;
    case GATHERV:
      MAKE(Gatherv, gatherv, in, mine, s->type, out, r->counts, r->places, r->type, c->root, comm);
      break;
    case ALLGATHER:
      MAKE(Allgather, allgather, in, n, s->type, out, n, r->type, comm);
      break;
    case ALLGATHERV:
      MAKE(Allgatherv, allgatherv, in, mine, s->type, out, r->counts, r->places, r->type, comm);
      break;
    case ALLTOALL:
      MAKE(Alltoall, alltoall, in, n, s->type, out, n, r->type, comm);
      break;
    default:
      MAKE(Alltoallv, alltoallv, in, s->counts, s->places, s->type, out, r->counts, r->places, r->type, comm);
  }
}

/* All that is under way, in the ways that MPI has: some of it is done afterwards. */
static void complete_some(struct job* job) {
  MPI_Request requests[SLOTS];
  int which[SLOTS], done[SLOTS], n = 0, found = 0;
  const unsigned how = draw(&job->own, 6);
  for (int s = 0; s < SLOTS; ++s) {
    if (job->slots[s].state != UNDER_WAY || draw(&job->own, 3) == 0) continue;
    if (how == 2 && job->slots[s].form == PERSISTENT) continue; /* MPICH 5.0 sees errors there by itself */
    which[n] = s;
    requests[n++] = job->slots[s].request;
  }
  switch (how) {
    case 0:
      MPI_Testany(n, requests, &done[0], &found, MPI_STATUS_IGNORE);
      found = found && done[0] != MPI_UNDEFINED;
      break;
    case 1:
      MPI_Testsome(n, requests, &found, done, MPI_STATUSES_IGNORE);
      break;
    case 2:
      MPI_Testall(n, requests, &found, MPI_STATUSES_IGNORE);
      for (int k = 0; k < n; ++k) done[k] = k;
      found = found ? n : 0;
      break;
    case 3:
      MPI_Waitany(n, requests, &done[0], MPI_STATUS_IGNORE);
      found = done[0] != MPI_UNDEFINED;
      break;
    case 4:
      MPI_Waitsome(n, requests, &found, done, MPI_STATUSES_IGNORE);
      break;
    default:
      for (int k = 0; k < n; ++k) MPI_Request_get_status(requests[k], &done[k], MPI_STATUS_IGNORE);
      return;
  }
  for (int k = 0; k < n; ++k) job->slots[which[k]].request = requests[k];
  for (int k = 0; k < found && found != MPI_UNDEFINED; ++k) check(job, &job->slots[which[done[k]]]);
}

static void finish(struct job* job, struct call* c) {
  if (c->state != UNDER_WAY) return;
  int done = 0;
  if (draw(&job->own, 2) == 0) {
    while (!done) MPI_Test(&c->request, &done, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
  }
  check(job, c);
}

static void clear(struct call* c) {
  if (c->state == EMPTY) return;
  if (c->form == PERSISTENT) MPI_Request_free(&c->request);
  free_types(c);
  free_side(&c->send);
  free_side(&c->recv);
  c->state = EMPTY;
}

static void another(struct job* job, struct call* c, int id) {
  static const int most[] = {0, 1, 7, 150, MOST};
  unsigned* const common = &job->common;
  c->comm = (int)draw(common, COMMS);
  c->id = id;
  c->kind = (enum kind)draw(common, KINDS);
  c->form = (enum form)draw(common, 3);
  c->base = (int)draw(common, BASES);
  c->op = (int)draw(common, 4);
  c->count = most[draw(common, 5)];
  c->gap = is_irregular(c->kind) && c->kind != REDUCE_SCATTER ? (int)draw(common, 3) : 0;
  const unsigned root = draw(common, 1000), in_place = draw(common, 2), free_early = draw(common, 2);
  const int apart[2] = {1 + (int)draw(&job->own, 3), 1 + (int)draw(&job->own, 3)}; /* layouts are a rank's own affair */
  const MPI_Comm comm = job->comms[c->comm];
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_rank(comm, &c->rank);
  MPI_Comm_size(comm, &c->size);
  c->root = (int)(root % (unsigned)c->size);
  const int at_root = is_rooted(c->kind) && c->kind != BCAST;
  c->in_place = in_place && c->kind != BCAST && (!at_root || c->rank == c->root) &&
                !(c->form == PERSISTENT && is_reduction(c->kind));
  const int dense = is_reduction(c->kind) || (c->form == PERSISTENT && MPI_VERSION < 4);
  make_side(c, &c->send, dense ? 1 : apart[0], 1);
  make_side(c, &c->recv, dense ? 1 : apart[1], c->kind == REDUCE_SCATTER);
  fill(c);
  make(c, comm);
  if (free_early) free_types(c);
  c->state = DONE;
  if (c->form == BLOCKING) check(job, c);
  if (c->form == NONBLOCKING) c->state = UNDER_WAY;
}

/* Another communicator in the place of one; that may go while its calls are under way. */
static void renew(struct job* job, int which) {
  const unsigned how = draw(&job->common, 3), from = draw(&job->common, COMMS), split = draw(&job->common, 3);
  MPI_Comm next = MPI_COMM_NULL, old = job->comms[which];
  if (which == 0) return;
  for (int s = 0; s < SLOTS; ++s) { /* no MPI is sure to keep it for persistent calls */
    if (job->slots[s].form == PERSISTENT && job->slots[s].comm == which) return;
  }
  if (job->comms[from] != MPI_COMM_NULL) {
    int rank, size;
    MPI_Comm_rank(job->comms[from], &rank);
    MPI_Comm_size(job->comms[from], &size);
    if (how == 0) MPI_Comm_dup(job->comms[from], &next);
    if (how == 1) MPI_Comm_split(job->comms[from], split == 2 && rank == 0 ? MPI_UNDEFINED : rank % 2, -rank, &next);
    if (how == 2) MPI_Comm_split(job->comms[from], 0, (rank + 1) % size, &next);
  }
  if (old != MPI_COMM_NULL) MPI_Comm_free(&old);
  job->comms[which] = next;
}

static void* work(void* given) {
  struct job* const job = given;
  for (int step = 0; step < job->steps; ++step) {
    const unsigned slot = draw(&job->common, SLOTS), what = draw(&job->common, 12);
    struct call* const c = &job->slots[slot];
    if (what == 0) {
      renew(job, (int)(slot % COMMS));
      continue;
    }
    finish(job, c);
    if (what < 5 && c->state == DONE && c->form == PERSISTENT) {
      fill(c);
      MPI_Start(&c->request);
      c->state = UNDER_WAY;
    } else if (what >= 5) {
      clear(c);
      another(job, c, step);
    }
    complete_some(job);
  }
  for (int s = 0; s < SLOTS; ++s) {
    finish(job, &job->slots[s]);
    clear(&job->slots[s]);
  }
  for (int k = 1; k < COMMS; ++k)
    if (job->comms[k] != MPI_COMM_NULL) MPI_Comm_free(&job->comms[k]);
  return NULL;
}

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
  for (int base = 0; base < BASES; ++base) {
    if (*type != bases()[base]) continue;
    const size_t bytes = bytes_of(base);
    for (int i = 0; i < *n; ++i) {
      char* const to = (char*)inout + (size_t)i * bytes;
      put(base, to, get(base, to) + get(base, (char*)in + (size_t)i * bytes));
    }
    return;
  }
}

int main(int argc, char** argv) {
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int steps = argc > 2 ? atoi(argv[2]) : 300, seed = argc > 3 ? atoi(argv[3]) : 1;
  const int threads = argc > 4 && provided == MPI_THREAD_MULTIPLE ? atoi(argv[4]) : 1;
  struct job* const jobs = calloc((size_t)threads, sizeof *jobs);
  pthread_t* const others = calloc((size_t)threads, sizeof *others);
  if (jobs == NULL || others == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Op_create(add, 1, &own_sum);
  for (int t = 0; t < threads; ++t) {
    struct job* const job = &jobs[t];
    job->thread = t;
    job->steps = steps;
    job->common = (unsigned)(seed * 1000 + t);
    job->own = (unsigned)(seed * 1000 + 100 * t + rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &job->comms[0]);
    for (int k = 1; k < COMMS; ++k) job->comms[k] = MPI_COMM_NULL;
  }
  for (int t = 1; t < threads; ++t) pthread_create(&others[t], NULL, work, &jobs[t]);
  work(&jobs[0]);
  int wrong = 0, all = 0, calls = 0;
  for (int t = 0; t < threads; ++t) {
    if (t > 0) pthread_join(others[t], NULL);
    wrong += jobs[t].wrong;
    calls += jobs[t].calls;
    MPI_Comm_free(&jobs[t].comms[0]);
  }
  MPI_Op_free(&own_sum);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  free(jobs);
  free(others);
  MPI_Finalize();
  return wrong != 0;
}
