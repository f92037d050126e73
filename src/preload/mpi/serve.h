// What every intercepted collective does, whatever its form.
#pragma once

#include <mpi.h>

#include <memory>
#include <tuple>

#include "preload/mpi/kept.h"
#include "preload/mpi/requests.h"
#include "preload/mpi/runtime.h"

namespace laconic::preload {

/// False: the call is MPI's, and nobody needs to think about it.
inline bool worth_a_look(Call& call) {
  const Runtime* const runtime = Runtime::get();
  if (runtime == nullptr || call.comm == MPI_COMM_NULL) return false;
  return call.irregular ? runtime->serves_some(call.collective) : bytes_at_a_glance(call) >= runtime->least_bytes();
}

/// Counts a call that is left to MPI; not one whose size this rank does not know.
inline void pass(const Call& call, const char* reason) {
  if (!call.irregular) tally_of_process().pass(reason);
}

/// The group of a call that may be served; null: it has been refused, or, and counted, it is MPI's.
inline Group* group_for(Call& call) {
  Runtime& runtime = *Runtime::get();
  Group* const group = call.refused ? nullptr : runtime.group_of(call.comm, &call.refused);
  if (group == nullptr && !call.refused)
    pass(call, "communicators of one rank, between groups, with other programs, or of sessions");
  if (group == nullptr || runtime.may_serve(call, *group)) return group;
  call.left_alone_over = group;
  return nullptr;
}

/// What MPI said of a call that is left to it: counted over its communicator, unless MPI has refused it.
inline int left_alone(const Call& call, int code) {
  if (code == MPI_SUCCESS && call.left_alone_over != nullptr) call.left_alone_over->count_call();
  return code;
}

/// The same for one that goes on in the background. `begun`: it waits for nobody, so what it needs must be there.
inline Group* group_for_later(Call& call, bool begun) {
  Group* const group = group_for(call);
  if (group == nullptr) return nullptr;
  const auto leave = [&](const char* reason) -> Group* {
    pass(call, reason);
    call.left_alone_over = group;
    return nullptr;
  };
  if (!Runtime::get()->has_threads())
    return leave("non-blocking calls where MPI lets one thread in only, or LACONIC_NONBLOCKING is off");
  if (!begun && !Runtime::get()->has_starts())
    return leave("persistent calls where another tool comes before Laconic, and starts them");
  if (!begun || group->is_accompanied()) return group;
  return leave("non-blocking calls over communicators of MPI_Comm_idup, or too many");
}

/// function(arguments..., communicator): the plain call over another communicator than the one in the arguments, which
/// comes last. For now: nothing is kept.
/// As PlainCall or PlainStart.
template <typename Function, typename... Arguments>
auto plain_call(Function function, std::tuple<Arguments...> arguments) {
  return [function, arguments](MPI_Comm comm, auto... request) mutable {
    std::get<sizeof...(Arguments) - 1>(arguments) = comm;
    return std::apply([&](auto... a) { return function(a..., request...); }, arguments);
  };
}

/// The same for later, as PlainCall or PlainStart: with what is kept of the call, which has that itself from now on.
template <typename Function, typename... Arguments>
auto plain_call_kept(Call& call, int rank, int size, Function function, const std::tuple<Arguments...>& arguments) {
  return [function, arguments, kept = std::make_shared<const Kept>(call, rank, size)](MPI_Comm comm, auto... request) {
    auto given = std::apply([&](const auto&... a) { return std::make_tuple(kept->in_place_of(a)...); }, arguments);
    std::get<sizeof...(Arguments) - 1>(given) = comm;
    return std::apply([&](auto... a) { return function(a..., request...); }, given);
  };
}

}  // namespace laconic::preload
