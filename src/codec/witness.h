// Looks at bytes while they are read or written, so that a checksum costs no pass over memory of its own.
#pragma once

#include <cstdint>
#include <span>

namespace laconic {

/// Is shown pieces of a payload while a cache holds them, none of them twice. Several threads may do so at once.
class Witness {
 public:
  virtual void see(std::span<const std::uint8_t> piece) = 0;

 protected:
  ~Witness() = default;
};

}  // namespace laconic
