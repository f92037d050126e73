// NCCL's collectives behind plain.h, on device memory and any other.
#pragma once

#include <memory>

#include "transport/nccl/rounds.h"
#include "transport/plain.h"

namespace laconic::nccl {

/// Over `program`, the program's own communicator, so that a call costs what it would cost the program; or, if that is
/// null, over the data link. `rounds` must outlive it. NCCL has no scan. Its calls return when the result is there,
/// unless they may leave them on the program's stream. Pageable memory goes through pinned memory: that is for small
/// arrays and for tests.
std::unique_ptr<PlainCollectives> make_plain_nccl(Rounds& rounds, ncclComm_t program);

}  // namespace laconic::nccl
