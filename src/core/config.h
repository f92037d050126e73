// What a user sets from outside the program: the LACONIC_... environment variables, parsed once, refused exactly.
//   LACONIC_BOUND    a bound (core/bound.h); unset: no bit of any result changes
//   LACONIC_THREADS  threads of one rank for encoding and decoding, 1..1024; 1
//   LACONIC_MODE     auto, compressed, plain: whether calls compress; auto
//   LACONIC_CACHE    folder for what was measured of links and codec, or off; unset: the user's cache folder
//   LACONIC_VERIFY   1: also run the exact operation and report the achieved error; 0
//   LACONIC_CHECK    1: ranks agree on every call before it is made, also where the plain library makes it; 0
//   LACONIC_TIMEOUT  seconds after which a rank stops waiting for the others, with an error; 0 waits for ever; 60,
//                    but for ever in MPI's drop-in library: MPI itself waits, too
//   LACONIC_SIMD     auto, scalar, portable, avx2, avx512, avx512x: which kernels to use (same bytes); auto
//   LACONIC_NCCL_SOCKETS  on, off: whether ranks over NCCL announce messages by TCP, where all can; on
//   LACONIC_LOG      off, error, warning, info, debug, each to standard error or, with ",file:PATH", appended
//                    to a file; "file:PATH" alone means info; off
// and of the drop-in libraries:
//   LACONIC_POLICY   TOML file: which calls to serve, and how (preload/policy.h); unset: all alike
//   LACONIC_REPORT   summary, to standard error at the end, or the name of a JSON file; unset
//   LACONIC_NONBLOCKING  auto, on, off: whether non-blocking calls are served, for which MPI must let several
//                    threads in; auto
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bound.h"
#include "core/log.h"

namespace laconic {

/// Of one rank.
inline constexpr int most_threads = 1024;

/// Kernels of the codec. A forced target that the processor lacks is an error where it is used.
enum class Simd : std::uint8_t { automatic = 0, scalar = 1, portable = 2, avx2 = 3, avx512 = 4, avx512x = 5 };

/// "auto", "scalar", "portable", "avx2", "avx512", "avx512x" (see codec/slice/target.h).
std::string_view name_of(Simd simd);

enum class Switch : std::uint8_t { automatic = 0, on = 1, off = 2 };
/// "auto", "on", "off".
std::string_view name_of(Switch s);

/// Whether a collective compresses or is left to the plain library. The numbers are part of the C interface.
enum class Mode : std::uint8_t {
  automatic = 0,   ///< what is expected to be faster: by model, by a sample of the data, by what calls took before
  compressed = 1,  ///< always compressed
  plain = 2,       ///< the plain library's own collective wherever it has one
};

/// "auto", "compressed", "plain".
std::string_view name_of(Mode mode);

struct Config {
  std::optional<Bound> bound;
  int threads = 1;
  Mode mode = Mode::automatic;
  std::string cache;  ///< whole path; empty: the user's cache folder; "off"
  bool verify = false;
  bool check = false;
  std::string policy;  ///< path; empty: none
  std::string report;  ///< "summary" or a whole path; empty: none
  Switch nonblocking = Switch::automatic;
  std::optional<double> timeout_seconds;  ///< where it was said
  Simd simd = Simd::automatic;
  bool nccl_sockets = true;
  LogLevel log_level = LogLevel::off;
  std::string log_path;  ///< empty: standard error
  /// Of the environment: names that are set, begin with LACONIC_ and mean nothing to Laconic: misspelt ones, likely.
  std::vector<std::string> unknown{};

  /// The value of an environment variable, or nullopt when it is not set. A set but empty one counts as not set.
  using Lookup = std::function<std::optional<std::string>(const char* name)>;

  /// Throws Error(invalid_argument) that names the variable, its value and what would work.
  static Config from(const Lookup& lookup);
  static Config from_environment();

  /// Directs the log to where log_level and log_path say. Throws Error(io).
  void apply_log() const;
};

/// The environment as it was at the first successful call, from which on the log goes where it says, if it says so;
/// there it warns of names that are unknown. Thread safe. Throws as from() and apply_log() do.
const Config& config();

}  // namespace laconic
