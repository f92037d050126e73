// Which of a host's addresses the other ranks are to connect to: mostly the one that NCCL would take for its sockets,
// since they reach it there. What its users set from outside counts here, too: NCCL_SOCKET_IFNAME has beginnings of
// interfaces' names, with commas between ("^" before them: all but those; "=": whole names), NCCL_SOCKET_FAMILY AF_INET
// or AF_INET6.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/nccl/socket.h"

namespace laconic::nccl {

/// One of its addresses.
struct Interface {
  std::string name;
  bool up = true;
  Address address{};
};

/// The first one by that rule; none: nullopt. `names`, `family`: the variables' values, empty where they are not set.
/// Then a network of InfiniBand goes first, and what only reaches this host's containers or itself last.
std::optional<Interface> choose(std::span<const Interface> all, std::string_view names, std::string_view family);

/// Of this host, by its environment.
std::optional<Interface> interface_for_ranks();

}  // namespace laconic::nccl
