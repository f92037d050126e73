// Where each rank's part of an array lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/array.h"
#include "transport/plain.h"

namespace laconic {

/// Bytes of an operand, which are only read all the same, or of a result.
struct Piece {
  std::uint8_t* data = nullptr;
  std::size_t bytes = 0;
};

Piece whole(ConstArray x);

/// Each rank's part of an array of all parts, null where it has none. `own`: elements of this rank's part, as all have
/// them where they are equal.
std::vector<Piece> pieces_of(ConstArray all, const Parts& parts, std::size_t own, std::size_t ranks);

}  // namespace laconic
