// NCCL's collectives behind plain.h, on device memory and any other.
#pragma once

#include <memory>

#include "transport/nccl/rounds.h"
#include "transport/plain.h"

namespace laconic::nccl {

/// Over the data link of `rounds`, which must outlive it. NCCL has no scan. Its calls return when the result is there.
/// Pageable memory goes through pinned memory: that is for small arrays and for tests.
std::unique_ptr<PlainCollectives> make_plain_nccl(Rounds& rounds);

}  // namespace laconic::nccl
