// MPI_Allreduce and the other blocking collectives, as the program calls them.
#include <mpi.h>

#include "preload/mpi/next.h"
#include "preload/mpi/serve.h"

using laconic::Collective;
using laconic::preload::all_blocks;
using laconic::preload::Call;
using laconic::preload::GivenType;
using laconic::preload::Group;
using laconic::preload::group_for;
using laconic::preload::left_alone;
using laconic::preload::one_block;
using laconic::preload::perform;
using laconic::preload::plain_call;
using laconic::preload::Runtime;
using laconic::preload::worth_a_look;

// NOLINTBEGIN(bugprone-macro-parentheses): parameter lists and whole calls have none
#define LACONIC_BLOCKING(name, pmpi_name, parameters, arguments, call_)                           \
  extern "C" int name(parameters) {                                                               \
    static const auto mpi = laconic::preload::next<decltype(&pmpi_name)>(#name);                  \
    Call call = call_;                                                                            \
    if (!worth_a_look(call)) return mpi(arguments);                                               \
    Group* const group = group_for(call);                                                         \
    if (group == nullptr) return call.refused ? *call.refused : left_alone(call, mpi(arguments)); \
    return perform(*Runtime::get(), *group, call, plain_call(mpi, std::tuple{arguments}));        \
  }
// NOLINTEND(bugprone-macro-parentheses)

#define COUNT int
#define DISPLACEMENT int
#define LACONIC_COLLECTIVE(Name, name, parameters, arguments, call) \
  LACONIC_BLOCKING(MPI_##Name, PMPI_##Name, LACONIC_LIST(parameters), LACONIC_LIST(arguments), LACONIC_LIST(call))
#include "preload/mpi/collectives.def"
#undef COUNT
#undef DISPLACEMENT

#if MPI_VERSION >= 4
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define LACONIC_COLLECTIVE(Name, name, parameters, arguments, call)                                    \
  LACONIC_BLOCKING(MPI_##Name##_c, PMPI_##Name##_c, LACONIC_LIST(parameters), LACONIC_LIST(arguments), \
                   LACONIC_LIST(call))
#include "preload/mpi/collectives.def"
#undef COUNT
#undef DISPLACEMENT
#endif
