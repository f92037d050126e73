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

/// What a report says of itself.
struct Heading {
  int ranks = 0;                       ///< together; 0: one process alone
  std::string policy{};                ///< bound and rules
  std::string library{};               ///< what calls are left to: "MPI", "NCCL"
  std::string process{};               ///< which one, where it is one of several that report
  int lowest_rank = -1;                ///< that this one had; -1: none
  std::vector<std::string> unknown{};  ///< variables that are set and mean nothing
};

/// Calls of one collective with arrays of one size class.
struct TallyLine {
  std::uint64_t calls = 0;
  std::uint64_t plain_calls = 0;  ///< of those, left to the plain library because that is faster
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
  /// A call that was large enough, but was left to the plain library as it is.
  void pass(const std::string& reason);
  /// Of other ranks: pack() of theirs.
  void merge(const std::vector<std::uint8_t>& packed);
  [[nodiscard]] std::vector<std::uint8_t> pack() const;

  /// For people.
  [[nodiscard]] std::string to_text(const Heading& heading) const;
  [[nodiscard]] std::string to_json(const Heading& heading) const;
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
