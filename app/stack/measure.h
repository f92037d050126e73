// One rank's part of the experiment: plain and Laconic allreduce in turn, timed, counted and judged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "report/quality.h"
#include "stack/images.h"

namespace laconic::app {

/// The allreduce that Laconic is compared with. recv has send's dtype and count.
struct PlainAllreduce {
  std::string name;  ///< "MPI_Allreduce, Open MPI 4.1.4"
  std::function<void(ConstArray send, MutArray recv, Op op)> run;
};

/// What one side (plain or Laconic) achieved. The same on every rank.
struct Side {
  double seconds = 0;  ///< median over repetitions of the slowest rank
  double fastest = 0, slowest = 0;
  double wire_bytes = 0;   ///< all hosts, one call, as the interfaces count them; 0 without --wire
  Quality quality;         ///< against the exact result; violations: outside bound + half an ulp
  bool identical = false;  ///< every rank holds the same bits
};

struct StackResult {
  std::string plain_name;
  std::string transport;
  int ranks = 0;
  std::string set;
  std::string op;
  std::string bound;
  std::size_t images = 0, rows = 0, cols = 0;  ///< rows and cols of the mosaic
  std::uint64_t raw_bytes = 0;                 ///< of one rank's operand
  double absolute_bound = 0;                   ///< promised for each element
  Side plain, laconic;
  // Of Laconic, one call:
  double payload_bytes = 0;                            ///< all ranks, handed to the transport
  double payload_bytes_busiest = 0;                    ///< the rank that sends most
  double uncompressed_bytes = 0;                       ///< what the same messages would be raw, all ranks
  double codec = 0, wire = 0, compute = 0, other = 0;  ///< seconds, mean over ranks
  double link_rate = 0;                                ///< bytes per second; 0 unknown
  /// Tile (0, 0) of the result for pictures, and the exact values; rank 0 only.
  std::vector<double> picture, exact;

  [[nodiscard]] double ratio() const { return payload_bytes > 0 ? uncompressed_bytes / payload_bytes : 1; }
  [[nodiscard]] double speedup() const { return plain.seconds / laconic.seconds; }
  /// Share of the time that the busiest rank's link needs for the compressed bytes.
  [[nodiscard]] double efficiency() const {
    return link_rate > 0 ? payload_bytes_busiest / link_rate / laconic.seconds : 0;
  }
};

/// Collective: every rank of `comm` calls it with the same options. `step` is called after the warm-up and each
/// repetition.
StackResult measure_stack(
    const StackOptions& options, const ImageSet& set, Communicator& comm, const PlainAllreduce& plain,
    const std::function<void()>& step = [] {});

/// A plain ring allreduce over any transport: the baseline where there is no MPI.
PlainAllreduce ring_baseline(Transport& transport);

}  // namespace laconic::app
