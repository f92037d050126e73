#include "transport/nccl/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

namespace laconic::nccl {
namespace {

constexpr std::array preferences = {"ib", "^docker,lo,virbr", "docker", "lo"};

/// By one value of NCCL_SOCKET_IFNAME.
bool is_meant(std::string_view name, std::string_view names) {
  const bool all_but = names.starts_with('^');
  if (all_but) names.remove_prefix(1);
  const bool exact = names.starts_with('=');
  if (exact) names.remove_prefix(1);
  bool found = false;
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    const std::string_view one = names.substr(0, comma);
    found = found || (!one.empty() && (exact ? name == one : name.starts_with(one)));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return found != all_but;
}

/// IPv6 beyond this link and host; whose addresses start with fe8 to feb, or are ::1.
bool is_global(const Address& a) {
  if (a.family != AF_INET6) return true;
  const bool link_local = a.bytes[0] == 0xfe && (a.bytes[1] & 0xc0) == 0x80;
  const bool loopback = std::all_of(a.bytes.begin(), a.bytes.end() - 1, [](auto byte) { return byte == 0; });
  return !link_local && !loopback;
}

bool is_of(const Address& a, std::string_view family) {
  if (a.family != AF_INET && a.family != AF_INET6) return false;
  return family.empty() || (a.family == AF_INET ? family == "AF_INET" : family == "AF_INET6");
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing in Laconic changes it
  return value != nullptr ? value : "";
}

}  // namespace

std::optional<Interface> choose(std::span<const Interface> all, std::string_view names, std::string_view family) {
  const auto first = [&](std::string_view meant) -> std::optional<Interface> {
    const auto found = std::ranges::find_if(all, [&](const Interface& i) {
      return i.up && is_of(i.address, family) && is_global(i.address) && is_meant(i.name, meant);
    });
    if (found == all.end()) return std::nullopt;
    return *found;
  };
  if (!names.empty()) return first(names);
  for (const char* const preferred : preferences) {
    if (auto found = first(preferred)) return found;
  }
  return std::nullopt;
}

std::optional<Interface> interface_for_ranks() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    constexpr unsigned works = IFF_UP | IFF_RUNNING;
    all.push_back({i->ifa_name, (i->ifa_flags & works) == works, address_of(*i->ifa_addr)});
  }
  return choose(all, variable("NCCL_SOCKET_IFNAME"), variable("NCCL_SOCKET_FAMILY"));
}

}  // namespace laconic::nccl
