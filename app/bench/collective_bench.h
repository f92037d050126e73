// One rank's part of `laconic bench <collective>`: all modes in turn, timed, counted, and every element checked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/collective_options.h"
#include "collective/communicator.h"

namespace laconic::app {

/// What one mode achieved at one size. The same on every rank.
struct ModeResult {
  std::string name;       ///< "plain", "cprp2p szx", ...
  std::size_t calls = 0;  ///< that were timed
  double seconds = 0;     ///< their median, each of the slowest rank
  double fastest = 0, slowest = 0;
  double first = 0;       ///< the first call, which warms up
  double wire_bytes = 0;  ///< all hosts, one call, as the interfaces count them; 0 without --wire
  double max_error = 0;
  double violations = 0;          ///< values outside of what the mode promises; of plain MPI, outside of the bound
  bool promised = false;          ///< whether that breaks a promise
  std::optional<bool> identical;  ///< whether all ranks hold the same bits, where all get the same values
  // Of one call, not of plain MPI:
  double sent_bytes = 0;                               ///< payload, all ranks
  double original_bytes = 0;                           ///< what the same messages would be uncompressed
  double codec = 0, wire = 0, compute = 0, other = 0;  ///< seconds, medians, mean over ranks
  double scratch_bytes = 0;                            ///< of the rank that holds most
  double scratch_allowance = 0;                        ///< 2 x the compressed message + 4 segments of at most 1 MiB

  [[nodiscard]] double ratio() const { return original_bytes > 0 ? original_bytes / sent_bytes : 1; }
};

/// All modes at one size.
struct SizeResult {
  std::size_t operand_bytes = 0;
  double absolute_bound = 0;  ///< the bound asked for, of each value
  std::vector<ModeResult> modes;

  /// How many times faster than plain MPI; 0 where that was not measured.
  [[nodiscard]] double speedup(const ModeResult& mode) const;
};

struct CollectiveResult {
  Collective collective{};
  std::string op;           ///< of a reduction, else empty
  std::optional<int> root;  ///< where there is one
  std::string field, dtype, bound, mpi;
  std::string link;  ///< rate of the links between hosts; empty: not known
  int ranks = 0;
  int repetitions = 0;  ///< turns of each mode
  bool counts_wire = false;
  std::vector<SizeResult> sizes;
};

/// Collective: every rank of `comm`, whose transport must have a plain library, calls it with the same options.
/// `each_size` is told what there is whenever another size has been measured. Throws Failure and Error.
CollectiveResult measure_collective(const CollectiveOptions& options, Communicator& comm,
                                    const std::function<void(const CollectiveResult&)>& each_size);

}  // namespace laconic::app
