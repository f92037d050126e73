// What happens to data on its way through a schedule. The pipeline moves messages and knows nothing else of them; a
// kernel knows where a block lies in memory and how it is coded. Another codec, another operation, or arrays in GPU
// memory are another kernel, not another collective.
#pragma once

#include <cstddef>

#include "collective/layout.h"
#include "frame/frame.h"

namespace laconic {

/// Called by one thread. Messages come from other ranks: a kernel checks them and throws Error(corrupt).
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Bytes of one element when nothing is compressed.
  [[nodiscard]] virtual std::size_t element_bytes() const = 0;

  /// Most bytes of a message that says `values` elements.
  [[nodiscard]] virtual std::size_t capacity(std::size_t values) const = 0;

  /// This rank's own operand, as a message. Returns its bytes.
  virtual std::size_t encode(const Part& part, frame::MutBytes out) = 0;

  /// This rank's own operand combined with a received message.
  virtual std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) = 0;

  /// Two messages combined.
  virtual std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) = 0;

  /// The final message of a part of the result: goes into the caller's memory. This rank's own operand of the part has
  /// been encoded by then.
  virtual void deliver(const Part& part, frame::Bytes message) = 0;
};

}  // namespace laconic
