// The Fortran entry points that go round MPI's C functions. All of Open MPI's: mpi_allreduce_ of mpif.h and `use mpi`,
// and ompi_allreduce_f, to which those of `use mpi_f08` lead. MPICH's Fortran calls C by itself, but those of `use
// mpi_f08` that have no buffer call C by the names for tools: mpi_comm_dup_f08_ calls PMPI_Comm_dup.
#include <mpi.h>

#ifndef MPI_ABI

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "preload/mpi/next.h"
#include "preload/mpi/runtime.h"
#include "preload/mpi/ulfm.h"

#ifdef OPEN_MPI
// Persistent collectives: of Open MPI 5, whose version 4 has them as an extension and in another header.
#define COUNT int
#define DISPLACEMENT int
#define LACONIC_COLLECTIVE(Name, name, parameters, arguments, call)                                \
  extern "C" int MPI_##Name##_init(LACONIC_LIST(parameters), MPI_Info info, MPI_Request* request); \
  extern "C" int MPIX_##Name##_init(LACONIC_LIST(parameters), MPI_Info info, MPI_Request* request);
#include "preload/mpi/collectives.def"
#undef COUNT
#undef DISPLACEMENT
#endif

namespace {

#ifdef OPEN_MPI
/// One of Fortran's MPI_IN_PLACE and MPI_BOTTOM, which are variables, known by their addresses.
void* constant(const char* name) { return ::dlsym(RTLD_DEFAULT, name); }

bool is_in_place(const void* given) {
  static const void* const here = constant("mpi_fortran_in_place_");
  return given == here;
}

bool is_bottom(const void* given) {
  static const void* const here = constant("mpi_fortran_bottom_");
  return given == here;
}

/// The addresses in place of weights of a graph's edges.
const int* weights(const void* given) {
  static const void* const none = constant("mpi_fortran_unweighted_");
  static const void* const empty = constant("mpi_fortran_weights_empty_");
  if (given == nullptr) return nullptr;
  return given == none ? MPI_UNWEIGHTED : given == empty ? MPI_WEIGHTS_EMPTY : static_cast<const int*>(given);
}

MPI_Fint handle(const void* given) { return *static_cast<const MPI_Fint*>(given); }

/// The C argument of type T that a Fortran argument stands for. Fortran integers are C ints here.
template <typename T>
T from_fortran(void* given) {
  if constexpr (std::is_same_v<T, int>) {
    return static_cast<int>(handle(given));
  } else if constexpr (std::is_same_v<T, MPI_Datatype>) {
    return PMPI_Type_f2c(handle(given));
  } else if constexpr (std::is_same_v<T, MPI_Op>) {
    return PMPI_Op_f2c(handle(given));
  } else if constexpr (std::is_same_v<T, MPI_Comm>) {
    return PMPI_Comm_f2c(handle(given));
  } else if constexpr (std::is_same_v<T, MPI_Group>) {
    return PMPI_Group_f2c(handle(given));
  } else if constexpr (std::is_same_v<T, MPI_Info>) {
    return PMPI_Info_f2c(handle(given));
  } else if constexpr (std::is_same_v<T, const int*>) {
    static_assert(sizeof(MPI_Fint) == sizeof(int));
    return weights(given);
  } else {
    static_assert(std::is_same_v<std::remove_const_t<std::remove_pointer_t<T>>, void>);
    if (is_in_place(given)) return MPI_IN_PLACE;
    if (is_bottom(given)) return MPI_BOTTOM;
    return given;
  }
}

/// function(given...), with the result where Fortran wants it.
template <typename... Parameters>
void blocking(int (*function)(Parameters...), void* const* given, MPI_Fint* code) {
  const auto call = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return function(from_fortran<Parameters>(given[I])...);
  };
  const int result = call(std::index_sequence_for<Parameters...>());
  if (code != nullptr) *code = result;
}

MPI_Fint to_fortran(MPI_Request request) { return PMPI_Request_c2f(request); }
MPI_Fint to_fortran(MPI_Comm comm) { return PMPI_Comm_c2f(comm); }

template <typename Handle, std::size_t... I, typename... Parameters>
int make(int (*function)(Parameters...), void* const* given, Handle* made, std::index_sequence<I...>) {
  using All = std::tuple<Parameters...>;
  return function(from_fortran<std::tuple_element_t<I, All>>(given[I])..., made);
}

/// The C function's last parameter is the request or communicator that it makes.
template <typename... Parameters>
void making(int (*function)(Parameters...), void* const* given, MPI_Fint* handle, MPI_Fint* code) {
  std::remove_pointer_t<std::tuple_element_t<sizeof...(Parameters) - 1, std::tuple<Parameters...>>> made{};
  const int result = make(function, given, &made, std::make_index_sequence<sizeof...(Parameters) - 1>());
  if (result == MPI_SUCCESS) *handle = to_fortran(made);
  if (code != nullptr) *code = result;
}
#endif

int start_all(MPI_Fint count, MPI_Fint* requests) {
  // Open MPI refuses a null array even of none.
  std::vector<MPI_Request> all(static_cast<std::size_t>(std::max(count, 1)), MPI_REQUEST_NULL);
  const int n = std::max(count, 0);
  std::transform(requests, requests + n, all.begin(), [](MPI_Fint r) { return PMPI_Request_f2c(r); });
  const int result = MPI_Startall(count, all.data());
  std::transform(all.begin(), all.begin() + n, requests, [](MPI_Request r) { return PMPI_Request_c2f(r); });
  return result;
}

void set(MPI_Fint* code, int result) {
  if (code != nullptr) *code = result;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses)
#define LACONIC_GIVEN_1 void* a1
#define LACONIC_GIVEN_2 LACONIC_GIVEN_1, void* a2
#define LACONIC_GIVEN_3 LACONIC_GIVEN_2, void* a3
#define LACONIC_GIVEN_4 LACONIC_GIVEN_3, void* a4
#define LACONIC_GIVEN_5 LACONIC_GIVEN_4, void* a5
#define LACONIC_GIVEN_6 LACONIC_GIVEN_5, void* a6
#define LACONIC_GIVEN_7 LACONIC_GIVEN_6, void* a7
#define LACONIC_GIVEN_8 LACONIC_GIVEN_7, void* a8
#define LACONIC_GIVEN_9 LACONIC_GIVEN_8, void* a9
#define LACONIC_ALL_1 a1
#define LACONIC_ALL_2 LACONIC_ALL_1, a2
#define LACONIC_ALL_3 LACONIC_ALL_2, a3
#define LACONIC_ALL_4 LACONIC_ALL_3, a4
#define LACONIC_ALL_5 LACONIC_ALL_4, a5
#define LACONIC_ALL_6 LACONIC_ALL_5, a6
#define LACONIC_ALL_7 LACONIC_ALL_6, a7
#define LACONIC_ALL_8 LACONIC_ALL_7, a8
#define LACONIC_ALL_9 LACONIC_ALL_8, a9

#ifdef OPEN_MPI
#define LACONIC_FORTRAN_BLOCKING(symbol, Name, n)  \
  void symbol(LACONIC_GIVEN_##n, MPI_Fint* code) { \
    void* const given[] = {LACONIC_ALL_##n};       \
    blocking(&MPI_##Name, given, code);            \
  }
#define LACONIC_FORTRAN_MAKING(symbol, Name, n, ...)               \
  void symbol(LACONIC_GIVEN_##n, MPI_Fint* made, MPI_Fint* code) { \
    __VA_ARGS__                                                    \
    void* const given[] = {LACONIC_ALL_##n};                       \
    making(&MPI_##Name, given, made, code);                        \
  }
#define LACONIC_FORTRAN_PERSISTENT(symbol, function, n)                        \
  void symbol(LACONIC_GIVEN_##n, void* info, MPI_Fint* made, MPI_Fint* code) { \
    void* const given[] = {LACONIC_ALL_##n, info};                             \
    making(&function, given, made, code);                                      \
  }
/// n: parameters of the blocking C function.
#define LACONIC_FORTRAN(Name, name, n)                                   \
  LACONIC_FORTRAN_BLOCKING(mpi_##name##_, Name, n)                       \
  LACONIC_FORTRAN_BLOCKING(ompi_##name##_f, Name, n)                     \
  LACONIC_FORTRAN_MAKING(mpi_i##name##_, I##name, n)                     \
  LACONIC_FORTRAN_MAKING(ompi_i##name##_f, I##name, n)                   \
  LACONIC_FORTRAN_PERSISTENT(mpi_##name##_init_, MPI_##Name##_init, n)   \
  LACONIC_FORTRAN_PERSISTENT(ompi_##name##_init_f, MPI_##Name##_init, n) \
  LACONIC_FORTRAN_PERSISTENT(mpix_##name##_init_, MPIX_##Name##_init, n) \
  LACONIC_FORTRAN_PERSISTENT(ompix_##name##_init_f, MPIX_##Name##_init, n)

LACONIC_FORTRAN(Allreduce, allreduce, 6)
LACONIC_FORTRAN(Reduce, reduce, 7)
LACONIC_FORTRAN(Reduce_scatter, reduce_scatter, 6)
LACONIC_FORTRAN(Reduce_scatter_block, reduce_scatter_block, 6)
LACONIC_FORTRAN(Bcast, bcast, 5)
LACONIC_FORTRAN(Scatter, scatter, 8)
LACONIC_FORTRAN(Scatterv, scatterv, 9)
LACONIC_FORTRAN(Gather, gather, 8)
LACONIC_FORTRAN(Gatherv, gatherv, 9)
LACONIC_FORTRAN(Allgather, allgather, 7)
LACONIC_FORTRAN(Allgatherv, allgatherv, 8)
LACONIC_FORTRAN(Alltoall, alltoall, 7)
LACONIC_FORTRAN(Alltoallv, alltoallv, 9)

/// n: parameters before the communicator.
#define LACONIC_FORTRAN_CREATES(Name, name, n, ...)           \
  LACONIC_FORTRAN_MAKING(mpi_##name##_, Name, n, __VA_ARGS__) \
  LACONIC_FORTRAN_MAKING(ompi_##name##_f, Name, n, __VA_ARGS__)
#define LACONIC_FORTRAN_ALL(name, parameters, ...) \
  void mpi_##name##_ parameters { __VA_ARGS__ }    \
  void ompi_##name##_f parameters { __VA_ARGS__ }
#else
/// MPI's own makes it: only that knows what its Fortran has in place of weights. MPI_COMM_WORLD, which nothing makes,
/// stays there if it is refused.
#define LACONIC_FORTRAN_CREATES(Name, name, n, ...)                               \
  void mpi_##name##_f08_(LACONIC_GIVEN_##n, MPI_Fint* made, MPI_Fint* code) {     \
    using Create = void (*)(LACONIC_GIVEN_##n, MPI_Fint*, MPI_Fint*);             \
    static const auto mpi = laconic::preload::next<Create>("mpi_" #name "_f08_"); \
    MPI_Fint comm = MPI_COMM_WORLD, result = MPI_SUCCESS;                         \
    mpi(LACONIC_ALL_##n, &comm, &result);                                         \
    if (comm != MPI_COMM_WORLD) *made = comm;                                     \
    auto* const runtime = laconic::preload::Runtime::get();                       \
    if (result == MPI_SUCCESS && comm != MPI_COMM_WORLD) {                        \
      const MPI_Fint parent = *static_cast<const MPI_Fint*>(a1);                  \
      if (runtime != nullptr)                                                     \
        runtime->accompany(comm, parent);                                         \
      else                                                                        \
        laconic::preload::Runtime::note_early(comm, parent);                      \
    }                                                                             \
    set(code, result);                                                            \
  }
#define LACONIC_FORTRAN_ALL(name, parameters, ...) \
  void mpi_##name##_f08_ parameters { __VA_ARGS__ }
#endif

/// Fortran compilers differ in what is true; MPI wants 1.
#define LACONIC_LOGICAL(a)               \
  MPI_Fint yes = handle(a) != 0 ? 1 : 0; \
  (a) = &yes;

LACONIC_FORTRAN_CREATES(Comm_dup, comm_dup, 1)
LACONIC_FORTRAN_CREATES(Comm_dup_with_info, comm_dup_with_info, 2)
LACONIC_FORTRAN_CREATES(Comm_create, comm_create, 2)
LACONIC_FORTRAN_CREATES(Comm_create_group, comm_create_group, 3)
LACONIC_FORTRAN_CREATES(Comm_split, comm_split, 3)
LACONIC_FORTRAN_CREATES(Comm_split_type, comm_split_type, 4)
LACONIC_FORTRAN_CREATES(Cart_sub, cart_sub, 2)
LACONIC_FORTRAN_CREATES(Intercomm_create, intercomm_create, 5)
LACONIC_FORTRAN_CREATES(Intercomm_merge, intercomm_merge, 2, LACONIC_LOGICAL(a2))
LACONIC_FORTRAN_CREATES(Cart_create, cart_create, 5, LACONIC_LOGICAL(a5))
LACONIC_FORTRAN_CREATES(Graph_create, graph_create, 5, LACONIC_LOGICAL(a5))
LACONIC_FORTRAN_CREATES(Dist_graph_create, dist_graph_create, 8, LACONIC_LOGICAL(a8))
LACONIC_FORTRAN_CREATES(Dist_graph_create_adjacent, dist_graph_create_adjacent, 9, LACONIC_LOGICAL(a9))

LACONIC_FORTRAN_ALL(init, (MPI_Fint * code), set(code, MPI_Init(nullptr, nullptr));)
LACONIC_FORTRAN_ALL(init_thread, (const MPI_Fint* required, MPI_Fint* provided, MPI_Fint* code),
                    set(code, MPI_Init_thread(nullptr, nullptr, *required, provided));)
LACONIC_FORTRAN_ALL(query_thread, (MPI_Fint * provided, MPI_Fint* code), set(code, MPI_Query_thread(provided));)
LACONIC_FORTRAN_ALL(finalize, (MPI_Fint * code), set(code, MPI_Finalize());)
LACONIC_FORTRAN_ALL(comm_free, (MPI_Fint * comm, MPI_Fint* code), MPI_Comm c = PMPI_Comm_f2c(*comm);
                    set(code, MPI_Comm_free(&c)); *comm = PMPI_Comm_c2f(c);)
LACONIC_FORTRAN_ALL(comm_disconnect, (MPI_Fint * comm, MPI_Fint* code), MPI_Comm c = PMPI_Comm_f2c(*comm);
                    set(code, MPI_Comm_disconnect(&c)); *comm = PMPI_Comm_c2f(c);)
LACONIC_FORTRAN_ALL(cancel, (const MPI_Fint* request, MPI_Fint* code), MPI_Request r = PMPI_Request_f2c(*request);
                    set(code, MPI_Cancel(&r));)
LACONIC_FORTRAN_ALL(start, (MPI_Fint * request, MPI_Fint* code), MPI_Request r = PMPI_Request_f2c(*request);
                    set(code, MPI_Start(&r)); *request = PMPI_Request_c2f(r);)
LACONIC_FORTRAN_ALL(startall, (const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* code),
                    set(code, start_all(*count, requests));)
LACONIC_FORTRAN_ALL(request_free, (MPI_Fint * request, MPI_Fint* code), MPI_Request r = PMPI_Request_f2c(*request);
                    set(code, MPI_Request_free(&r)); *request = PMPI_Request_c2f(r);)
LACONIC_FORTRAN_ALL(comm_set_errhandler, (const MPI_Fint* comm, const MPI_Fint* handler, MPI_Fint* code),
                    set(code, MPI_Comm_set_errhandler(PMPI_Comm_f2c(*comm), PMPI_Errhandler_f2c(*handler)));)
#ifdef OPEN_MPI
/// Of MPI 1: version 4 has it still, and calls MPI's own function.
LACONIC_FORTRAN_ALL(errhandler_set, (const MPI_Fint* comm, const MPI_Fint* handler, MPI_Fint* code),
                    set(code, MPI_Comm_set_errhandler(PMPI_Comm_f2c(*comm), PMPI_Errhandler_f2c(*handler)));)
void mpix_comm_revoke_(const MPI_Fint* comm, MPI_Fint* code) { set(code, MPIX_Comm_revoke(PMPI_Comm_f2c(*comm))); }
void ompix_comm_revoke_f(const MPI_Fint* comm, MPI_Fint* code) { set(code, MPIX_Comm_revoke(PMPI_Comm_f2c(*comm))); }
#endif
// NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses)

}  // extern "C"

#endif
