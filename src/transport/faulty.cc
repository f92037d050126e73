#include "transport/faulty.h"

#include <chrono>
#include <thread>
#include <utility>

namespace laconic {
namespace {

/// Keeps the damaged copy alive for as long as the carrier needs it.
struct CopyState final : Request::State {
  CopyState(std::vector<std::uint8_t> bytes, Transport& inner, int to, int tag)
      : copy(std::move(bytes)), request(inner.isend(copy, to, tag)) {}
  bool test() override { return request.test(); }
  void wait() override { request.wait(); }
  bool await(bool patient) override { return request.await(patient); }

  std::vector<std::uint8_t> copy;
  Request request;
};

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(Transport& inner, Fault fault) : inner_(inner), fault_(std::move(fault)) {}
  FaultyTransport(std::unique_ptr<Transport> inner, Fault fault)
      : owned_(std::move(inner)), inner_(*owned_), fault_(std::move(fault)) {}

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  void poll() override { inner_.poll(); }
  std::unique_ptr<Transport> duplicate() override {
    return std::make_unique<FaultyTransport>(inner_.duplicate(), fault_);
  }
  std::unique_ptr<Transport> companion() override {
    return std::make_unique<FaultyTransport>(inner_.companion(), fault_);
  }
  [[nodiscard]] const std::vector<int>& nodes() const override { return inner_.nodes(); }
  [[nodiscard]] bool needs_everyone() const override { return inner_.needs_everyone(); }
  [[nodiscard]] bool lets_go() const override { return inner_.lets_go(); }
  [[nodiscard]] std::string description() const override { return inner_.description() + " with faults"; }

  Request isend(std::span<const std::uint8_t> data, int to, int tag) override {
    std::vector<std::uint8_t> copy(data.begin(), data.end());
    fault_(copy, to, sent_++);
    return Request(std::make_unique<CopyState>(std::move(copy), inner_, to, tag));
  }

  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override { return inner_.irecv(buffer, from, tag); }

  void allgather_small(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    inner_.allgather_small(mine, all);
  }

 private:
  std::unique_ptr<Transport> owned_;  ///< of a duplicate
  Transport& inner_;
  Fault fault_;
  std::uint64_t sent_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_faulty_transport(Transport& inner, Fault fault) {
  return std::make_unique<FaultyTransport>(inner, std::move(fault));
}

Fault flip_bit(std::uint64_t nth, std::uint64_t bit) {
  return [=](std::vector<std::uint8_t>& message, int, std::uint64_t n) {
    if (n != nth || message.empty()) return;
    const std::uint64_t at = bit % (message.size() * 8);
    message[at / 8] = static_cast<std::uint8_t>(message[at / 8] ^ (1U << (at % 8)));
  };
}

Fault truncate(std::uint64_t nth, std::size_t keep) {
  return [=](std::vector<std::uint8_t>& message, int, std::uint64_t n) {
    if (n == nth && message.size() > keep) message.resize(keep);
  };
}

Fault delay(double seconds) {
  return [=](std::vector<std::uint8_t>&, int, std::uint64_t) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
}

}  // namespace laconic
