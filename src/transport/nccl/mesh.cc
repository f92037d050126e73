#include "transport/nccl/mesh.h"

#include <cstring>
#include <list>
#include <optional>
#include <type_traits>
#include <utility>

#include "transport/timeout.h"

namespace laconic::nccl {
namespace {

/// What comes first over a connection, from the rank that makes it.
struct Hello {
  std::uint64_t magic = 0x314F4C4C4548434CU;  // "LCHELLO1"
  Token token{};
  std::int32_t from = 0, to = 0;

  bool operator==(const Hello&) const = default;
};
static_assert(std::has_unique_object_representations_v<Hello>);
using Bytes = std::array<std::uint8_t, sizeof(Hello)>;

constexpr std::size_t most_callers = 256;

/// Every rank connects to those below it.
class Meeting {
 public:
  Meeting(Socket& listener, int rank, std::span<const Address> addresses, const Token& token)
      : listener_(listener), rank_(rank), token_(token), peers_(addresses.size()) {
    for (int r = 0; r < rank; ++r) {
      Call& c = calls_.emplace_back(Call{.socket = Socket::connect(addresses[static_cast<std::size_t>(r)]), .rank = r});
      failed_ = failed_ || !c.socket.is_open();
      const Hello mine{.token = token, .from = rank, .to = r};
      std::memcpy(c.hello.data(), &mine, sizeof mine);
    }
  }

  /// Does what can be done at once. True: it is over.
  bool advance() {
    std::erase_if(calls_, [this](Call& c) { return !failed_ && is_through(c); });
    take_callers();
    std::erase_if(callers_, [this](Call& c) { return is_known(c); });
    return failed_ || is_complete();
  }

  [[nodiscard]] bool is_complete() const {
    for (int r = 0; r < static_cast<int>(peers_.size()); ++r) {
      if (r != rank_ && !peers_[static_cast<std::size_t>(r)].is_open()) return false;
    }
    return true;
  }
  std::vector<Socket> peers() && { return std::move(peers_); }

 private:
  struct Call {
    Socket socket{};
    int rank = 0;  ///< of one that this rank makes
    std::size_t moved = 0;
    Bytes hello{};
  };

  bool is_through(Call& c) {
    const auto sent = c.socket.send(std::span(c.hello).subspan(c.moved));
    failed_ = failed_ || !sent;
    c.moved += sent.value_or(0);
    if (c.moved < c.hello.size()) return false;
    peers_[static_cast<std::size_t>(c.rank)] = std::move(c.socket);
    return true;
  }

  /// Who has been silent for longest makes room for others: a rank says hello at once.
  void take_callers() {
    for (std::size_t taken = 0; taken < most_callers && !failed_; ++taken) {
      Socket s = listener_.accept(failed_);
      if (!s.is_open()) return;
      if (callers_.size() == most_callers) callers_.pop_front();
      callers_.push_back({.socket = std::move(s)});
    }
  }

  /// Whether it is settled who that is: a rank, or a stranger, whom this lets go.
  bool is_known(Call& c) {
    const auto got = c.socket.receive(std::span(c.hello).subspan(c.moved));
    if (!got) return true;
    c.moved += *got;
    if (c.moved < c.hello.size()) return false;
    Hello theirs;
    std::memcpy(&theirs, c.hello.data(), sizeof theirs);
    const bool is_rank = theirs.from > rank_ && theirs.from < static_cast<int>(peers_.size());
    if (!is_rank || theirs != Hello{.token = token_, .from = theirs.from, .to = rank_}) return true;
    Socket& place = peers_[static_cast<std::size_t>(theirs.from)];
    if (!place.is_open()) place = std::move(c.socket);
    return true;
  }

  Socket& listener_;
  int rank_;
  Token token_;
  std::vector<Socket> peers_;
  std::list<Call> calls_, callers_;
  bool failed_ = false;
};

}  // namespace

std::vector<Socket> connect_all(Socket& listener, int rank, std::span<const Address> addresses, const Token& token,
                                double patience, const std::function<void()>& check) {
  Meeting meeting(listener, rank, addresses, token);
  const auto over = [&] {
    check();
    return meeting.advance();
  };
  if (!done_in_time(over, patience) || !meeting.is_complete()) return {};
  return std::move(meeting).peers();
}

}  // namespace laconic::nccl
