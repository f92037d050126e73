// What every intercepted collective does, whatever its form.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <concepts>
#include <tuple>
#include <vector>

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

/// An argument, as it was; of arrays that the program may take away as soon as its call returns, a copy.
template <typename T>
class KeptArgument {
 public:
  KeptArgument(T given, const std::vector<const void*>&, int) : given_(given) {}
  [[nodiscard]] T get() const { return given_; }

 private:
  T given_;
};
template <std::integral I>
class KeptArgument<const I*> {
 public:
  KeptArgument(const I* given, const std::vector<const void*>& arrays, int size) : given_(given) {
    if (std::find(arrays.begin(), arrays.end(), given) != arrays.end()) copy_.assign(given, given + size);
  }
  [[nodiscard]] const I* get() const { return copy_.empty() ? given_ : copy_.data(); }

 private:
  const I* given_;
  std::vector<I> copy_;
};

/// function(arguments..., communicator): the plain call over another communicator than the one in the arguments, which
/// comes last. For now: arrays are not copied.
template <typename Function, typename... Arguments>
PlainCall plain_call(Function function, std::tuple<Arguments...> arguments) {
  return [function, arguments](MPI_Comm comm) mutable {
    std::get<sizeof...(Arguments) - 1>(arguments) = comm;
    return std::apply(function, arguments);
  };
}

/// The same for later, as PlainCall or PlainStart: counts and displacements that mean something on this rank are
/// copied.
template <typename Function, typename... Arguments>
auto plain_call_kept(const Call& call, const Group& group, Function function,
                     const std::tuple<Arguments...>& arguments) {
  std::vector<const void*> arrays;
  for (const Side* side : sides_of(call, group.rank())) {
    for (const void* array : {side->counts.array(), side->displacements.array()}) {
      if (array != nullptr) arrays.push_back(array);
    }
  }
  auto kept =
      std::apply([&](const auto&... a) { return std::make_tuple(KeptArgument<Arguments>(a, arrays, group.size())...); },
                 arguments);
  return [function, kept](MPI_Comm comm, auto... request) {
    auto given = std::apply([](const auto&... k) { return std::make_tuple(k.get()...); }, kept);
    std::get<sizeof...(Arguments) - 1>(given) = comm;
    return std::apply([&](auto... a) { return function(a..., request...); }, given);
  };
}

}  // namespace laconic::preload
