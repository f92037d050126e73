// Movement: data is encoded once where it comes from, forwarded unopened, decoded where it is wanted. Every rank that
// keeps a block holds what its message decodes to, the one it came from too, so all hold the same bits.
#pragma once

#include <vector>

#include "collective/budget.h"
#include "collective/kernel.h"

namespace laconic {

class MovementKernel final : public Kernel {
 public:
  MovementKernel(std::vector<ConstArray> operands, std::vector<MutArray> results, const Budget& budget, int threads);
  /// By slice.
  MovementKernel(std::vector<ConstArray> operands, std::vector<MutArray> results, const Grid& grid, int threads);

  [[nodiscard]] std::size_t element_bytes() const override;
  [[nodiscard]] std::size_t capacity(std::size_t values) const override;
  std::size_t encode(const Part& part, frame::MutBytes out) override;
  [[nodiscard]] bool delivers_as_it_encodes() const override { return codec_.linear() != nullptr; }
  std::size_t encode_final(const Part& part, frame::MutBytes out) override;
  std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) override;
  /// Copied as it is.
  void keep(const Part& part) override;
  void deliver(const Part& part, frame::Bytes message) override;
  [[nodiscard]] bool reopens() const override { return budget_.reopens; }
  std::size_t reopen(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  [[nodiscard]] std::size_t scratch_bytes() const override { return opened_.capacity(); }

  /// Any elements as a message, and back; Error(corrupt) for another message than is due.
  std::size_t encode(ConstArray x, frame::MutBytes out) const;
  void decode(frame::Bytes message, MutArray y) const;

 private:
  Budget budget_;
  const Codec& codec_;
  int threads_;
  std::vector<std::uint8_t> opened_;
};

/// Throws Error(corrupt) unless the message claims to be `count` elements on this grid by this codec. (Decoding and
/// adding check the rest: sizes, table, checksum.)
void expect_frame(frame::Bytes message, const Grid& grid, std::size_t count, CodecId codec = CodecId::slice);

}  // namespace laconic
