// How failures travel inside Laconic: one exception type with a code that survives the C boundary.
#pragma once

#include <stdexcept>
#include <string>

namespace laconic {

/// The numeric values are part of the C API (laconic_error): never renumber.
enum class Code : int {
  ok = 0,
  invalid_argument = 1,  ///< the caller passed something that can never work; the text names the argument
  unsupported = 2,       ///< valid, but not offered; the text says what would work
  mismatch = 3,          ///< ranks disagree; the text names rank, argument and both values
  corrupt = 4,           ///< a frame failed its checks
  too_small = 5,         ///< the caller's output buffer cannot hold the result
  transport = 6,         ///< MPI (or another carrier) failed, a peer died, a timeout
  io = 7,                ///< a file could not be read or written
  internal = 8,          ///< a defect of Laconic
};

/// Thrown by every room above the kernels. Kernels return sizes and never throw.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& what) : std::runtime_error(what), code_(code) {}
  [[nodiscard]] Code code() const noexcept { return code_; }

 private:
  Code code_;
};

/// A short name: "invalid argument", "corrupt frame", ...
const char* name_of(Code code);

}  // namespace laconic
