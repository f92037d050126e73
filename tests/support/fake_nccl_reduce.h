// What the fake NCCL computes.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

namespace laconic::fake {

/// 0 for what the fake does not know.
std::size_t size_of(ncclDataType_t type);

/// All ranks' arrays of `count` elements, reduced in rank order.
std::vector<unsigned char> reduced(const std::vector<const void*>& operands, std::size_t count, ncclDataType_t type,
                                   ncclRedOp_t op);

}  // namespace laconic::fake
