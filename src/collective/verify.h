// Verification of a call: the same collective runs once more without loss, and what it gives is compared with the
// result. For users who want to know the error that was achieved, and for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/array.h"

namespace laconic {

/// How far results are from the exact ones.
struct Comparison {
  double largest = 0;       ///< |result - exact| over elements that are finite in both
  std::uint64_t count = 0;  ///< elements compared
  /// The first element that is further off than was promised, or not finite where the exact one is, or the reverse.
  struct Offence {
    std::size_t element;
    double got, exact;
  };
  std::optional<Offence> offence;
};

/// How far off an element may be: bound + ulps units in the last place. A bound of 0: not at all; infinite: by
/// anything.
struct Tolerance {
  double bound = 0;
  double ulps = 0;
};

/// "element 5 is 1, exactly 2; promised within 0.1 (verification)"
std::string text_of(const Comparison::Offence& offence, double bound);

/// Adds a comparison; element 0 of the arrays is called `first`. NaN equals NaN. Both have the same dtype and count.
void compare(ConstArray got, ConstArray exact, Tolerance tolerance, std::size_t first, Comparison& sum);

/// Part of a call: some elements of each of its blocks, one block after the other.
struct Slab {
  MutArray send;  ///< a copy: may be changed
  std::vector<std::size_t> send_counts;
  MutArray recv;
  std::vector<std::size_t> recv_counts;
};

/// One call's. Made when all ranks know that there will be one, before the result is written.
class Verification {
 public:
  /// The same collective over a slab.
  using Exactly = std::function<void(const Slab&, Communicator&, const Options&)>;

  struct Blocks {
    std::vector<ConstArray> operands;  ///< that this rank brings
    std::vector<MutArray> results;     ///< that it gets; elements are counted through them, without gaps between
    std::size_t longest = 0;           ///< elements of the longest of either on any rank
    bool lent = false;                 ///< a plain library may have all operands as its room
  };

  /// Blocks lie in `memory`, which must outlive this. Operands that will be overwritten are copied. ulps: that the
  /// result may be off beside its bound.
  Verification(Blocks blocks, double ulps, int threads, Exactly exactly, Memory& memory = host_memory());

  /// Collective. Puts what was achieved over all ranks into the report; throws Error(internal) on every rank where an
  /// element of any rank is further off than report.result_bound. Leaves the communicator's and the report's statistics
  /// as they are. Scratch: one or two slabs of 2^20 elements beside that of the exact call.
  void run(const char* collective, Communicator& comm, Report& report) const;

 private:
  [[nodiscard]] Comparison compare_all(double bound, Communicator& comm) const;

  Blocks blocks_;
  std::vector<Room> kept_;
  double ulps_;
  int threads_;
  Exactly exactly_;
  Memory& memory_;
};

}  // namespace laconic
