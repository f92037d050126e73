// What a communicator did: counts, bytes, where the time went, and why something travelled uncompressed.
// Plain values, one owner; ranks or threads keep their own and merge.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace laconic {

struct Stats {
  std::uint64_t calls = 0;
  std::uint64_t plain_calls = 0;                   ///< of those, made by the plain library: that is faster, or wished
  std::uint64_t original_bytes = 0;                ///< that the same schedule would have sent without compression
  std::uint64_t wire_bytes = 0;                    ///< sent, metadata included
  double codec_seconds = 0;                        ///< encoding, decoding, adding compressed streams
  double wire_seconds = 0;                         ///< waiting for the transport
  double compute_seconds = 0;                      ///< arithmetic on plain values
  double other_seconds = 0;                        ///< agreement, allocation, the rest
  std::map<std::string, std::uint64_t> fallbacks;  ///< calls that went raw, by reason

  [[nodiscard]] double total_seconds() const { return codec_seconds + wire_seconds + compute_seconds + other_seconds; }
  /// original / wire; 1 when nothing was sent.
  [[nodiscard]] double ratio() const;

  void add_fallback(const std::string& reason) { ++fallbacks[reason]; }
  /// Adds counts, bytes and seconds.
  void merge(const Stats& other);
  /// One JSON object on one line; members are named as here, plus "ratio".
  [[nodiscard]] std::string to_json() const;

  friend bool operator==(const Stats&, const Stats&) = default;
};

/// Adds the seconds of its life to one member of Stats.
class Timed {
 public:
  explicit Timed(double& seconds) : seconds_(seconds), start_(Clock::now()) {}
  ~Timed() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_;
};

}  // namespace laconic
