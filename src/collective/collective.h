// The collectives by name.
#pragma once

#include <cstdint>

namespace laconic {

/// The numbers travel in metadata: never renumber.
enum class Collective : std::uint8_t {
  allreduce = 1,
  reduce_scatter = 2,
  allgather = 3,
  bcast = 4,
  scatter = 5,
  gather = 6,
  alltoall = 7,
  reduce = 8,
  scan = 9,
  exscan = 10,
  send = 11,
  recv = 12,
  sendrecv = 13,
};
/// Whether it has an operation.
constexpr bool reduces(Collective c) {
  return c == Collective::allreduce || c == Collective::reduce_scatter || c == Collective::reduce ||
         c == Collective::scan || c == Collective::exscan;
}
/// "allreduce", ...; "?" for a value that is none.
const char* name_of(Collective c);

}  // namespace laconic
