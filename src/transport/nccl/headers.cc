// Which way headers go. Each rank says where it listens; if all do, they connect; if that worked for all, it is by
// sockets.
#include "transport/nccl/headers.h"

#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "transport/nccl/interfaces.h"
#include "transport/nccl/mesh.h"
#include "transport/timeout.h"

namespace laconic::nccl {
namespace {

constexpr int most_ranks = 64;       // each has a connection to each
constexpr double mesh_patience = 3;  // seconds; all ranks are in it at once
constexpr int gather_spins = 500;    // see Rounds

/// The sockets that a rank is going to have. A process may have several ranks, and many communicators.
class Planned {
 public:
  explicit Planned(int sockets) : sockets_(sockets) { all += sockets; }
  ~Planned() { all -= sockets_; }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  /// Whether the program keeps most of the files that it may have open.
  [[nodiscard]] bool leaves_files() const {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(sockets_) <= limit.rlim_cur / 16 &&
           static_cast<rlim_t>(Socket::open_now() + all) <= limit.rlim_cur / 4;
  }

 private:
  inline static std::atomic<int> all{0};
  int sockets_;
};

/// What a rank tells the others of itself.
struct Place {
  Address address{};  ///< family 0: not by sockets
  Token token{};
};

void say(LogLevel level, const std::string& what) {
  if (log_enabled(level)) log(level, "over NCCL, ranks announce messages " + what);
}

template <typename T>
std::vector<T> gather(Link& data, const Setup& s, const T& mine) {
  const auto ranks = static_cast<std::size_t>(s.size);
  const Pinned out = s.pool.take(sizeof mine), in = s.pool.take(sizeof mine * ranks);
  std::memcpy(out.get(), &mine, sizeof mine);
  data.require("ncclAllGather",
               pncclAllGather(out.get(), in.get(), sizeof mine, ncclUint8, data.comm(), data.stream()));
  Operation operation(data, data.stream());
  const auto through = [&] {
    s.stop.check();
    return data.ready() && operation.done();
  };
  wait_until(through, s.rank, "all ranks to connect", s.timeout, gather_spins);
  std::vector<T> all(ranks);
  std::memcpy(all.data(), in.get(), sizeof mine * ranks);
  return all;
}

/// Where this rank listens from now on, if it can.
Place listen(Socket& listener, const Planned& planned, const Setup& s) {
  if (!s.sockets || !planned.leaves_files()) return {};
  const auto interface = interface_for_ranks();
  Place place;
  if (interface) listener = Socket::listen(interface->address);
  if (listener.is_open()) place.address = listener.address().value_or(Address{});
  const bool secret = ::getrandom(&place.token, sizeof place.token, 0) == sizeof place.token;
  if (place.address.family == 0 || !secret) {
    say(LogLevel::debug, "by NCCL: this rank has no socket" + (interface ? " on " + interface->name : ""));
    return {};
  }
  say(LogLevel::debug, "by TCP if all can; listens on " + interface->name + ", " + text_of(place.address));
  return place;
}

/// None if a rank cannot.
std::vector<Socket> connect(Link& data, const Setup& s) {
  const Planned planned(s.size);
  Socket listener;
  const std::vector<Place> places = gather(data, s, listen(listener, planned, s));
  std::vector<Address> addresses;
  for (const Place& p : places) addresses.push_back(p.address);
  const auto nowhere = std::ranges::find(addresses, 0, &Address::family);
  if (nowhere != addresses.end()) {
    say(LogLevel::info, "by NCCL: rank " + std::to_string(nowhere - addresses.begin()) + " has no socket");
    return {};
  }
  std::vector<Socket> peers =
      connect_all(listener, s.rank, addresses, places.front().token, mesh_patience, [&] { s.stop.check(); });
  const auto connected = gather(data, s, std::uint8_t{peers.empty() ? std::uint8_t{0} : std::uint8_t{1}});
  const auto alone = std::ranges::find(connected, 0);
  if (alone == connected.end()) return peers;
  say(LogLevel::info, "by NCCL: no connection to or from rank " + std::to_string(alone - connected.begin()));
  return {};
}

}  // namespace

std::unique_ptr<Headers> make_headers(Link& data, const Setup& setup) {
  if (setup.size <= most_ranks) {
    std::vector<Socket> peers = connect(data, setup);
    if (!peers.empty()) return make_socket_headers(std::move(peers), setup.rank);
  }
  return make_nccl_headers(data, setup);
}

}  // namespace laconic::nccl
