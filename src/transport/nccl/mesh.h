// A connection between every two ranks, made by all of them at once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "transport/nccl/socket.h"

namespace laconic::nccl {

/// What only the ranks know, so that nobody else can take a rank's place.
using Token = std::array<std::uint64_t, 2>;

/// Each rank has told the others where it listens (`addresses`, by rank). One socket for each rank, none for itself;
/// nothing if they are not all there after `patience` seconds, or cannot be. Others that connect are let go, and hold
/// nobody up. `check` may throw, and is called again and again.
std::vector<Socket> connect_all(Socket& listener, int rank, std::span<const Address> addresses, const Token& token,
                                double patience, const std::function<void()>& check);

}  // namespace laconic::nccl
