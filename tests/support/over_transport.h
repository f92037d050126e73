// A transport that hands everything on to another one, for tests to change some of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace laconic::test {

class OverTransport : public Transport {
 public:
  /// Borrows it.
  explicit OverTransport(Transport& over) : over_(over) {}

  [[nodiscard]] int rank() const override { return over_.rank(); }
  [[nodiscard]] int size() const override { return over_.size(); }
  Request isend(std::span<const std::uint8_t> data, int to, int tag) override { return over_.isend(data, to, tag); }
  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override { return over_.irecv(buffer, from, tag); }
  void allgather_small(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    over_.allgather_small(mine, all);
  }
  void poll() override { over_.poll(); }
  std::unique_ptr<Transport> duplicate() override { return over_.duplicate(); }
  [[nodiscard]] const std::vector<int>& nodes() const override { return over_.nodes(); }
  [[nodiscard]] std::string description() const override { return over_.description(); }

 protected:
  Transport& over_;
};

}  // namespace laconic::test
