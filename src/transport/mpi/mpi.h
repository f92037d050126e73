// Ranks of an MPI communicator. Compiled once per MPI library (laconic_openmpi, laconic_mpich). Everything here goes by
// the PMPI names, so that no wrapper of MPI calls, Laconic's own drop-in library least of all, meets its messages.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <vector>

#include "transport/timeout.h"
#include "transport/transport.h"

namespace laconic {

/// Collective over `comm`, which is duplicated: Laconic's messages never meet the program's. MPI must be initialised
/// (MPI_THREAD_FUNNELED or more when several threads exist) and outlive the transport; destroying it is collective too.
/// Throws Error(transport) with MPI's own text where MPI fails.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, double timeout_seconds = default_timeout());

/// A communicator of Laconic's own, for transports to share.
class OwnComm {
 public:
  /// Collective over `comm`: the same ranks and nothing else of it. It returns errors. Throws Error(transport).
  explicit OwnComm(MPI_Comm comm);
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;
  /// Frees it, which is collective too: not after a rank has been given up, nor where others have said that of this
  /// one.
  ~OwnComm();
  [[nodiscard]] MPI_Comm get() const { return comm_; }
  /// Something is left unfinished: freeing it would wait for the others.
  void give_up() { gave_up_ = true; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::atomic<bool> gave_up_{false};
};

/// One of two transports whose messages go over `own`, each with a `lane` (0, 1) of its own. All ranks meet in
/// collectives over `meeting`, one after the other with all else that happens there. `nodes`: for each rank the lowest
/// one that it shares memory with. Exchanges nothing.
std::unique_ptr<Transport> share_mpi_transport(std::shared_ptr<OwnComm> own, int lane, MPI_Comm meeting,
                                               double timeout_seconds, std::vector<int> nodes);

/// What MPI said on this thread when a call failed over a `meeting` of share_mpi_transport() that is not `own`: then it
/// has called that communicator's error handler, which should not be called again. MPI_SUCCESS: nothing; who has read
/// it sets it back to that.
int& error_of_meeting();

/// Such nodes. Collective. Throws Error(transport).
std::vector<int> find_mpi_nodes(MPI_Comm comm);

}  // namespace laconic
