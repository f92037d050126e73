#include "transport/pieces.h"

namespace laconic {

Piece whole(ConstArray x) {
  return {static_cast<std::uint8_t*>(const_cast<void*>(x.data)), x.bytes()};  // operands are only read all the same
}

std::vector<Piece> pieces_of(ConstArray all, const Parts& parts, std::size_t own, std::size_t ranks) {
  std::vector<Piece> pieces;
  const Piece array = whole(all);
  const std::size_t size = size_of(all.dtype);
  std::size_t packed = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t count = parts.equal ? own : parts.counts[r];
    const std::size_t first = parts.equal || parts.displs.empty() ? packed : parts.displs[r];
    pieces.push_back({count == 0 ? nullptr : array.data + first * size, count * size});
    packed += count;
  }
  return pieces;
}

}  // namespace laconic
