// MPI_Iallreduce and the other non-blocking collectives; the persistent ones; and what starts and frees those.
#include <mpi.h>

#include <string>

#include "preload/mpi/next.h"
#include "preload/mpi/serve.h"

using laconic::Collective;
using laconic::preload::all_blocks;
using laconic::preload::Call;
using laconic::preload::GivenType;
using laconic::preload::Group;
using laconic::preload::group_for_later;
using laconic::preload::left_alone;
using laconic::preload::one_block;
using laconic::preload::plain_call;
using laconic::preload::plain_call_kept;
using laconic::preload::Runtime;
using laconic::preload::worth_a_look;

namespace {

/// MPI's own function for a persistent collective. This library offers those of MPI 4 under Open MPI 4 too, which has
/// them by other names only; programs that look whether they are there find them.
template <typename Function>
Function next_persistent(const std::string& name) {
  const auto found = laconic::preload::next<Function>(name.c_str());
  if (found != nullptr || !name.starts_with("MPI_")) return found;
  return laconic::preload::next<Function>(("MPIX_" + name.substr(4)).c_str());
}

}  // namespace

// A thread of Laconic's makes the call, unless it is known not to be served.
// NOLINTBEGIN(bugprone-macro-parentheses): parameter lists and whole calls have none
#define LACONIC_NONBLOCKING(name, pmpi_name, parameters, arguments, call_)                                       \
  extern "C" int name(parameters, MPI_Request* request) {                                                        \
    static const auto mpi = laconic::preload::next<decltype(&name)>(#name);                                      \
    Call call = call_;                                                                                           \
    if (!worth_a_look(call) || request == nullptr) return mpi(arguments, request);                               \
    Group* const group = group_for_later(call, true);                                                            \
    if (group == nullptr) return call.refused ? *call.refused : left_alone(call, mpi(arguments, request));       \
    const std::tuple given{arguments};                                                                           \
    const auto keep = [&](Call& kept) {                                                                          \
      return plain_call_kept(kept, group->rank(), group->size(), &pmpi_name, given);                             \
    };                                                                                                           \
    return laconic::preload::begin(*Runtime::get(), *group, call, plain_call(&pmpi_name, given), keep, request); \
  }

#define LACONIC_PERSISTENT(name, pmpi_blocking, parameters, arguments, call_)                    \
  extern "C" int name(parameters, MPI_Info info, MPI_Request* request) {                         \
    static const auto mpi = next_persistent<decltype(&name)>(#name);                             \
    Call call = call_;                                                                           \
    if (mpi == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION;                                    \
    if (!worth_a_look(call) || request == nullptr) return mpi(arguments, info, request);         \
    Group* const group = group_for_later(call, false);                                           \
    const auto now = [&] { return mpi(arguments, info, request); };                              \
    if (group == nullptr) return call.refused ? *call.refused : now();                           \
    const std::tuple given{arguments};                                                           \
    const auto keep = [&](Call& kept) {                                                          \
      return plain_call_kept(kept, group->rank(), group->size(), &pmpi_blocking, given);         \
    };                                                                                           \
    return laconic::preload::make_persistent(*Runtime::get(), *group, call, now, keep, request); \
  }
// NOLINTEND(bugprone-macro-parentheses)

#define COUNT int
#define DISPLACEMENT int
#define LACONIC_COLLECTIVE(Name, name, parameters, arguments, call) \
  LACONIC_NONBLOCKING(MPI_I##name, PMPI_I##name, LACONIC_LIST(parameters), LACONIC_LIST(arguments), LACONIC_LIST(call))
#include "preload/mpi/collectives.def"

// Open MPI 5 has these, though it calls itself MPI 3.1, and serves programs by this same library as Open MPI 4 does.
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
#define LACONIC_COLLECTIVE(Name, name, parameters, arguments, call)                                     \
  LACONIC_PERSISTENT(MPI_##Name##_init, PMPI_##Name, LACONIC_LIST(parameters), LACONIC_LIST(arguments), \
                     LACONIC_LIST(call))
#include "preload/mpi/collectives.def"
#endif

#ifdef OPEN_MPI  // whose version 4 has them as an extension, <mpi-ext.h>
#define LACONIC_COLLECTIVE(Name, name, parameters, arguments, call)                                      \
  LACONIC_PERSISTENT(MPIX_##Name##_init, PMPI_##Name, LACONIC_LIST(parameters), LACONIC_LIST(arguments), \
                     LACONIC_LIST(call))
#include "preload/mpi/collectives.def"
#endif
#undef COUNT
#undef DISPLACEMENT

#if MPI_VERSION >= 4
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define LACONIC_COLLECTIVE(Name, name, parameters, arguments, call)                                         \
  LACONIC_NONBLOCKING(MPI_I##name##_c, PMPI_I##name##_c, LACONIC_LIST(parameters), LACONIC_LIST(arguments), \
                      LACONIC_LIST(call))
#include "preload/mpi/collectives.def"
#define LACONIC_COLLECTIVE(Name, name, parameters, arguments, call)                                           \
  LACONIC_PERSISTENT(MPI_##Name##_init_c, PMPI_##Name##_c, LACONIC_LIST(parameters), LACONIC_LIST(arguments), \
                     LACONIC_LIST(call))
#include "preload/mpi/collectives.def"
#undef COUNT
#undef DISPLACEMENT
#endif

extern "C" {

int MPI_Start(MPI_Request* request) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Start)>("MPI_Start");
  return laconic::preload::start_persistent(request, mpi);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Startall)>("MPI_Startall");
  if (count < 0 || !laconic::preload::has_persistent()) return mpi(count, requests);
  for (int i = 0; i < count; ++i) {
    const int code = laconic::preload::start_persistent(requests + i, &PMPI_Start);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request* request) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Cancel)>("MPI_Cancel");
  return Runtime::get() != nullptr && request != nullptr ? laconic::preload::cancel(request, mpi) : mpi(request);
}

int MPI_Request_free(MPI_Request* request) {
  static const auto mpi = laconic::preload::next<decltype(&PMPI_Request_free)>("MPI_Request_free");
  if (request != nullptr && laconic::preload::has_persistent()) laconic::preload::forget_persistent(*request);
  return mpi(request);
}

}  // extern "C"
