// Ranks of an NCCL communicator. Messages go in rounds, see rounds.h.
#pragma once

#include <nccl.h>

#include <memory>

#include "core/config.h"
#include "transport/nccl/stop.h"
#include "transport/timeout.h"
#include "transport/transport.h"

namespace laconic {

/// Buffers may be device memory (of the communicator's device), pinned host memory, or any other host memory, which
/// goes through pinned memory. What a device buffer holds must be there when it is passed, as with host memory: whoever
/// fills it on a stream synchronises that first. A completed receive is there for every stream.
/// Where the collectives of plain() work is said by PlainCollectives::work_on(); stream 0 at first.
///
/// needs_everyone(). After a failure (NCCL's, or a rank that does not come in time) nothing is under way any more and
/// every call throws the same Error(transport).
///
/// Collective over `comm`, from which three communicators, or four, are made: Laconic's messages never meet the
/// program's. Nothing may be under way on it meanwhile, and it need not live longer than this call, unless
/// `keeps_comm`: then the collectives of plain() are its own, which cost what they would cost the program, and may be
/// left on their stream (PlainCollectives::leave_on_stream()). Destroying the transport is collective too. Throws
/// Error(transport) with NCCL's own text where NCCL fails.
///
/// Setting `stop`, from any thread, is a failure, too, whatever the transport is doing or waits for; destroying it then
/// waits for nobody. While it is made `comm` may be aborted by another thread that has set `stop` before.
///
/// `sockets`: whether this rank's headers may go by TCP (headers.h).
std::unique_ptr<Transport> make_nccl_transport(ncclComm_t comm, double timeout_seconds = default_timeout(),
                                               const std::shared_ptr<nccl::Stop>& stop = std::make_shared<nccl::Stop>(),
                                               bool sockets = config().nccl_sockets, bool keeps_comm = false);

}  // namespace laconic
