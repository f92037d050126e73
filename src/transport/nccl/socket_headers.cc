// Headers by TCP, each from every rank to every other.
//
// A rank may be one round ahead of another, never more: it begins the next round when all headers of this one have come
// to it. So what one connection has under way fits into any socket's buffers, and of every peer exactly one header is
// taken in a round.
#include <string>

#include "core/error.h"
#include "transport/nccl/headers.h"

namespace laconic::nccl {
namespace {

class SocketHeaders final : public Headers {
 public:
  SocketHeaders(std::vector<Socket> peers, int rank) : rank_(static_cast<std::size_t>(rank)), all_(peers.size()) {
    for (Socket& s : peers) peers_.push_back({.socket = std::move(s)});
  }

  [[nodiscard]] bool on_device() const override { return false; }

  void begin(const Header& mine) override {
    all_[rank_] = mine;
    for (Peer& p : peers_) p.to_send = p.to_receive = sizeof(Header);
    peers_[rank_].to_send = peers_[rank_].to_receive = 0;
    static_cast<void>(ended());
  }

  [[nodiscard]] bool ended() override {
    bool all_through = true;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      Peer& p = peers_[r];
      if (!p.gone) advance(p, all_[r]);
      all_through = all_through && p.to_send == 0 && p.to_receive == 0;
    }
    return all_through;
  }

  void require_ranks() const override {
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (!peers_[r].gone) continue;
      throw Error(Code::transport, "rank " + std::to_string(rank_) + ": rank " + std::to_string(r) + " has gone");
    }
  }

  [[nodiscard]] std::span<const Header> all() const override { return all_; }

  /// The system sends on what is under way.
  void close(double) override { abort(); }
  void abort() noexcept override { peers_.clear(); }
  void hang_up() noexcept override {
    for (const Peer& p : peers_) p.socket.hang_up();
  }
  void await_silence() noexcept override {}

 private:
  struct Peer {
    Socket socket{};
    std::size_t to_send = 0, to_receive = 0;
    bool gone = false;  ///< and something of this round still had to go or come
  };

  void advance(Peer& p, Header& theirs) {
    if (p.to_send != 0) {
      const auto sent = p.socket.send(bytes_of(all_[rank_]).last(p.to_send));
      p.gone = !sent;
      p.to_send -= sent.value_or(0);
    }
    if (p.to_receive != 0) {
      const auto got = p.socket.receive(bytes_of(theirs).last(p.to_receive));
      p.gone = p.gone || !got;
      p.to_receive -= got.value_or(0);
    }
  }

  static std::span<std::uint8_t> bytes_of(Header& h) { return {reinterpret_cast<std::uint8_t*>(&h), sizeof h}; }

  std::size_t rank_;
  std::vector<Peer> peers_;
  std::vector<Header> all_;
};

}  // namespace

std::unique_ptr<Headers> make_socket_headers(std::vector<Socket> peers, int rank) {
  return std::make_unique<SocketHeaders>(std::move(peers), rank);
}

}  // namespace laconic::nccl
