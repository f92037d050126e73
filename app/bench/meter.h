// Time and bytes of a call that all ranks make together, collected call by call.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace laconic::app {

class Meter {
 public:
  /// Collective. `interface`: whose counters tell the bytes on the wire; empty: they are not counted. Throws
  /// Failure(usage) for one that this host does not have, at the first call.
  Meter(Transport& t, std::string interface);

  /// Collective: all ranks begin together, and the call lasts as long as on the slowest. Without `keep` it warms up.
  void call(const std::function<void()>& f, bool keep);

  [[nodiscard]] std::size_t calls() const { return seconds_.size(); }  ///< that were kept
  [[nodiscard]] double seconds() const;                                ///< median
  /// Of the very first call, which also pays for connections, pages and whatever is measured once.
  [[nodiscard]] double first() const { return first_; }
  [[nodiscard]] double fastest() const;
  [[nodiscard]] double slowest() const;
  /// Median, all hosts together; 0 where they are not counted.
  [[nodiscard]] double wire_bytes() const;

 private:
  Transport& t_;
  std::string interface_;
  bool counts_wire_ = false;
  double first_ = 0;
  std::vector<double> seconds_, bytes_;
};

/// Collective: whether all ranks hold the same bytes.
bool identical_everywhere(Transport& t, std::span<const std::uint8_t> bytes);

}  // namespace laconic::app
