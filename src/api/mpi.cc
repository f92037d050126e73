// Communicators over MPI for the C interface. Compiled once per MPI library.
#include "transport/mpi/mpi.h"

#include <dlfcn.h>
#include <laconic/laconic_mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/handle.h"

namespace laconic::api {
namespace {

/// What an MPI library answers by aborting, or by waiting for ever, is an error of ours.
void require_usable(MPI_Comm mpi) {
  const auto require = [](bool holds, const char* text) {
    if (!holds) throw Error(Code::invalid_argument, text);
  };
  require(mpi != MPI_COMM_NULL, "mpi is MPI_COMM_NULL");
  int initialized = 0;
  int finalized = 0;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  require(finalized == 0, "mpi: MPI_Finalize has been called");
  // A session's communicators are there without MPI_Init; these two are not. (Open MPI 5 has sessions, but is not MPI
  // 4; and what was built for Open MPI 4 runs over it.)
  const bool of_world = mpi == MPI_COMM_WORLD || mpi == MPI_COMM_SELF;
  const bool has_sessions = MPI_VERSION >= 4 || ::dlsym(RTLD_DEFAULT, "PMPI_Session_init") != nullptr;
  require(initialized != 0 || (has_sessions && !of_world), "mpi: MPI_Init has not been called");
  int between_groups = 0;
  PMPI_Comm_test_inter(mpi, &between_groups);
  require(between_groups == 0, "mpi is an intercommunicator: collectives are offered within one group of ranks only");
}

/// What this rank's environment says. A mistake there is told to all ranks, who would otherwise wait for this one.
struct Environment {
  Options defaults;
  double timeout = 0;
  std::optional<Error> mistake;

  Environment() {
    try {
      defaults = options_from_environment();
      timeout = default_timeout();
    } catch (const Error& e) {
      mistake = e;
    }
  }
  /// Collective. Throws on every rank if one has made a mistake.
  void agree(Transport& transport) const {
    const auto sound = allgather_value(transport, std::uint64_t{mistake ? 0U : 1U});
    if (mistake) throw Error(*mistake);
    const auto who = std::find(sound.begin(), sound.end(), 0);
    if (who == sound.end()) return;
    throw Error(Code::invalid_argument,
                "rank " + std::to_string(who - sound.begin()) +
                    " has a mistake in its environment and makes no communicator; it says which");
  }
};

}  // namespace
}  // namespace laconic::api

extern "C" int laconic_comm_from_mpi(MPI_Comm mpi, laconic_comm** comm) {
  if (comm == nullptr) return laconic::api::report(laconic::Code::invalid_argument, "comm is null");
  *comm = nullptr;
  return laconic::api::guarded([&] {
    laconic::api::require_usable(mpi);
    const laconic::api::Environment mine;
    auto transport = laconic::make_mpi_transport(mpi, mine.timeout);
    mine.agree(*transport);
    auto made = std::make_unique<laconic_comm>(std::move(transport), mine.defaults);
    made->begin_background();
    *comm = made.release();
  });
}
