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
inline bool worth_a_look(const Call& call) {
  const Runtime* const runtime = Runtime::get();
  return runtime != nullptr && call.comm != MPI_COMM_NULL && bytes_at_a_glance(call) >= runtime->least_bytes();
}

/// The group of a call that may be served; null: it is MPI's.
inline Group* group_for(const Call& call) {
  Runtime& runtime = *Runtime::get();
  Group* const group = runtime.group_of(call.comm);
  return group != nullptr && runtime.may_serve(call, *group) ? group : nullptr;
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
