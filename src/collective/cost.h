// What a collective costs, by the plain library and compressed: the model behind the automatic choice. Pure functions;
// what they are given is measured (calibration.h) or sampled from the data (routing.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective/collective.h"

namespace laconic {

/// Between two neighbouring ranks while all of them talk.
struct Link {
  double latency = 0;           ///< seconds until a few bytes are there
  double bytes_per_second = 0;  ///< each way
};

/// Original bytes per second of one thread of one rank while all of them work.
struct CodecSpeed {
  double encode = 0, add = 0, decode = 0;
};

struct Costs {
  Link link;
  CodecSpeed codec;
};

/// One call. All ranks see the same.
struct Workload {
  Collective collective = Collective::allreduce;
  std::uint64_t bytes = 0;  ///< of the array that is there for all ranks: the operand of a reduction or a bcast, all
                            ///< parts together of a scatter, gather or allgather, a rank's blocks of an alltoall
  int ranks = 1;
  int threads = 1;
};

/// Seconds of the plain library's own call, at its best: bytes on the busiest link and the least number of steps.
double plain_seconds(const Workload& w, const Link& link);

/// Seconds of ours, when what travels is `fraction` of the original: agreement and confirmation, the wire and the codec
/// side by side, and the segment that nothing hides.
double compressed_seconds(const Workload& w, const Costs& costs, double fraction);

/// Whether operands that go straight to who sums them (schedule/direct.h) are faster than partial sums around a ring,
/// in an allreduce or a reduce_scatter of elements of `element_bytes`: fewer bits to send, more to encode.
/// `sums`: false for extremes, which have no more bits than operands.
bool direct_pays(const Workload& w, const Costs& costs, double fraction, std::size_t element_bytes, bool sums);

/// Seconds of one of the small exchanges around our calls.
double exchange_seconds(int ranks, const Link& link);

}  // namespace laconic
