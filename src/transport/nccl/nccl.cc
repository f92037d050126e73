#include "transport/nccl/nccl.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "transport/nccl/plain.h"
#include "transport/nccl/rounds.h"

namespace laconic {
namespace {

using nccl::Rounds;

class SendState final : public Request::State {
 public:
  SendState(std::shared_ptr<Rounds> rounds, std::span<const std::uint8_t> data, int to, int tag)
      : rounds_(std::move(rounds)), message_(rounds_->send(data, to, tag)) {}
  SendState(const SendState&) = delete;
  SendState& operator=(const SendState&) = delete;
  ~SendState() override { rounds_->drop(message_); }

  bool test() override {
    if (!done()) rounds_->drive();
    return done();
  }
  void wait() override {
    rounds_->wait([this] { return done(); }, "rank " + std::to_string(message_->to) + " to take a message");
  }

 private:
  [[nodiscard]] bool done() const { return message_->state == Rounds::Outgoing::State::done; }

  std::shared_ptr<Rounds> rounds_;
  Rounds::Sent message_;
};

class RecvState final : public Request::State {
 public:
  RecvState(std::shared_ptr<Rounds> rounds, std::span<std::uint8_t> buffer, int from, int tag)
      : rounds_(std::move(rounds)), message_(rounds_->receive(buffer, from, tag)) {}
  RecvState(const RecvState&) = delete;
  RecvState& operator=(const RecvState&) = delete;
  ~RecvState() override { rounds_->drop(message_); }

  bool test() override {
    if (!done()) rounds_->drive();
    return done() && finish();
  }
  void wait() override {
    rounds_->wait([this] { return done(); }, "a message from rank " + std::to_string(message_->from));
    finish();
  }

 private:
  [[nodiscard]] bool done() const { return message_->state == Rounds::Incoming::State::done; }

  bool finish() {
    const std::size_t room = message_->buffer.size();
    if (message_->length > room) {
      throw Error(Code::transport, "rank " + std::to_string(rounds_->rank()) + ": a message of " +
                                       std::to_string(message_->length) + " bytes from rank " +
                                       std::to_string(message_->from) + " is longer than the " + std::to_string(room) +
                                       " bytes posted for it");
    }
    received = message_->length;
    return true;
  }

  std::shared_ptr<Rounds> rounds_;
  Rounds::Awaited message_;
};

/// What is the same for ranks that share memory: NCCL_HOSTID if set, as for NCCL itself; else the host's name, and its
/// boot, since containers may have names alike.
std::uint64_t host_digest() {
  std::string host;
  if (const char* id = std::getenv("NCCL_HOSTID"); id != nullptr && *id != '\0') {  // NOLINT(concurrency-mt-unsafe)
    host = id;
  } else {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    host = name.data() + ('\n' + boot);
  }
  std::uint64_t digest = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : host) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return digest;
}

/// For each rank the lowest rank of its host.
std::vector<int> nodes_of(const std::vector<std::uint64_t>& hosts) {
  std::vector<int> nodes;
  for (const std::uint64_t host : hosts) {
    nodes.push_back(static_cast<int>(std::find(hosts.begin(), hosts.end(), host) - hosts.begin()));
  }
  return nodes;
}

/// With what a user says of the network that it is to take: other links are other names.
std::string library_name() {
  int v = 0;
  pncclGetVersion(&v);
  const int major = v < 10000 ? v / 1000 : v / 10000;
  const int minor = v < 10000 ? v / 100 % 10 : v / 100 % 100;
  std::string name = "NCCL " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(v % 100);
  for (const char* variable : {"NCCL_NET", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_IB_HCA"}) {
    const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): as above
    if (value != nullptr && *value != '\0') name += std::string(", ") + variable + "=" + value;
  }
  return name;
}

class RoundsTransport final : public Transport {
 public:
  /// `program`: see make_nccl_transport(), or null. `nodes`: of a communicator with the same ranks; empty: still to be
  /// found.
  RoundsTransport(ncclComm_t comm, double timeout, const std::shared_ptr<nccl::Stop>& stop, ncclComm_t program,
                  bool sockets, std::vector<int> nodes)
      : rounds_(std::make_shared<Rounds>(comm, nccl::membership_in(comm, *stop), timeout, stop, sockets)),
        nodes_(std::move(nodes)),
        name_(library_name() + (rounds_->headers_on_device() ? ", headers by NCCL" : ", headers by TCP")),
        plain_(nccl::make_plain_nccl(*rounds_, program)) {
    if (nodes_.empty()) nodes_ = nodes_of(allgather_value(*this, host_digest()));
  }

  [[nodiscard]] int rank() const override { return rounds_->rank(); }
  [[nodiscard]] int size() const override { return rounds_->size(); }
  [[nodiscard]] const std::vector<int>& nodes() const override { return nodes_; }
  [[nodiscard]] std::string description() const override { return name_; }
  [[nodiscard]] bool needs_everyone() const override { return true; }
  [[nodiscard]] bool lets_go() const override { return true; }
  [[nodiscard]] bool takes_device_memory() const override { return true; }
  PlainCollectives* plain() override { return plain_.get(); }
  void poll() override { rounds_->join(); }

  Request isend(std::span<const std::uint8_t> data, int to, int tag) override {
    return Request(std::make_unique<SendState>(rounds_, data, to, tag));
  }
  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override {
    return Request(std::make_unique<RecvState>(rounds_, buffer, from, tag));
  }
  void allgather_small(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    rounds_->exchange(mine, all);
  }

  /// NCCL wants nothing under way on a communicator that is split.
  std::unique_ptr<Transport> duplicate() override {
    rounds_->exchange({}, {});
    rounds_->flush();
    return std::make_unique<RoundsTransport>(rounds_->data_link().comm(), rounds_->timeout(), rounds_->stop(), nullptr,
                                             rounds_->sockets(), nodes_);
  }

 private:
  std::shared_ptr<Rounds> rounds_;  ///< with all requests
  std::vector<int> nodes_;
  std::string name_;
  std::unique_ptr<PlainCollectives> plain_;
};

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(ncclComm_t comm, double timeout_seconds,
                                               const std::shared_ptr<nccl::Stop>& stop, bool sockets, bool keeps_comm) {
  return std::make_unique<RoundsTransport>(comm, timeout_seconds, stop, keeps_comm ? comm : nullptr, sockets,
                                           std::vector<int>{});
}

}  // namespace laconic
