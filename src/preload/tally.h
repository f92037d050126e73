// What a program's calls gained: counted by collective and size, added up over ranks, written as text or JSON.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "collective/collective.h"
#include "collective/options.h"

namespace laconic::preload {

/// Calls of one collective with arrays of one size class.
struct TallyLine {
  std::uint64_t calls = 0;
  std::uint64_t plain_calls = 0;  ///< of those, left to MPI because that is faster
  std::uint64_t original_bytes = 0;
  std::uint64_t wire_bytes = 0;
  double seconds = 0;
  double codec_seconds = 0;
  double saved_seconds = 0;    ///< what the model gives plain calls, less what the calls took
  double worst_error = 0;      ///< the largest achieved error over what was promised, of verified calls
  std::uint64_t verified = 0;  ///< elements
  void merge(const TallyLine& other);
};

/// One rank's, or all of them together. Thread safe.
class Tally {
 public:
  void add(Collective collective, std::uint64_t bytes, const Report& report, double plain_seconds);
  /// A call that was large enough, but was left to MPI as it is.
  void pass(const std::string& reason);
  /// Of other ranks: pack() of theirs.
  void merge(const std::vector<std::uint8_t>& packed);
  [[nodiscard]] std::vector<std::uint8_t> pack() const;

  /// For people; `ranks` (0: this process alone) and `policy` go into the heading.
  [[nodiscard]] std::string to_text(int ranks, const std::string& policy) const;
  [[nodiscard]] std::string to_json(int ranks, const std::string& policy) const;
  /// All lines together.
  [[nodiscard]] TallyLine total() const;
  /// Those of one collective.
  [[nodiscard]] TallyLine of(Collective collective) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<Collective, int>, TallyLine> lines_;  ///< by collective and bits of the number of bytes
  std::map<std::string, std::uint64_t> passed_, fallbacks_;
};

}  // namespace laconic::preload
