// Errors, and what a call can be told: part of laconic.hpp.
#pragma once

#include <laconic/laconic.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace laconic {
// Its own symbols: the library behind the C interface has classes of the same names.
inline namespace public_v1 {

class Error : public std::runtime_error {
 public:
  Error(int code, const char* text) : std::runtime_error(text), code_(static_cast<laconic_error>(code)) {}
  [[nodiscard]] laconic_error code() const noexcept { return code_; }

 private:
  laconic_error code_;
};

/// Throws what a C call reported.
inline void check(int code) {
  if (code != LACONIC_OK) throw Error(code, laconic_last_error());
}

enum class Op {
  sum = LACONIC_SUM,
  average = LACONIC_AVERAGE,
  min = LACONIC_MIN,
  max = LACONIC_MAX,
  product = LACONIC_PRODUCT
};

enum class Schedule {
  automatic = LACONIC_AUTOMATIC,
  ring = LACONIC_RING,
  recursive_doubling = LACONIC_RECURSIVE_DOUBLING,
  rabenseifner = LACONIC_RABENSEIFNER,
  two_level = LACONIC_TWO_LEVEL,
  direct = LACONIC_DIRECT
};

enum class Mode {
  from_environment = LACONIC_MODE_DEFAULT,
  automatic = LACONIC_MODE_AUTOMATIC,
  compressed = LACONIC_MODE_COMPRESSED,
  plain = LACONIC_MODE_PLAIN
};

enum class Codec {
  automatic = LACONIC_CODEC_DEFAULT,
  slice = LACONIC_SLICE,
  szx = LACONIC_SZX,
  fzlight = LACONIC_FZLIGHT,
  zfp = LACONIC_ZFP,
  zfp_rate = LACONIC_ZFP_RATE,
  lz4 = LACONIC_LZ4,
  lz4hc = LACONIC_LZ4HC,
  zstd = LACONIC_ZSTD
};

enum class Framework {
  automatic = LACONIC_FRAMEWORK_DEFAULT,
  on_grid = LACONIC_ON_GRID,
  stepwise = LACONIC_STEPWISE,
  point_to_point = LACONIC_POINT_TO_POINT
};

/// What is not set: of a call's options, as the communicator's say, and of those, as the environment says.
struct Options {
  std::string bound{};
  int threads = 0;
  std::optional<bool> unconfirmed{};
  std::size_t segment = 0;
  Schedule schedule = Schedule::automatic;
  std::optional<bool> verify{};
  Mode mode = Mode::from_environment;
  Codec codec = Codec::automatic;
  Framework framework = Framework::automatic;
  std::optional<bool> check{};

  /// Points to this one's bound.
  [[nodiscard]] laconic_options raw() const&& = delete;
  [[nodiscard]] laconic_options raw() const& {
    laconic_options o = LACONIC_OPTIONS_INIT;
    o.bound = bound.empty() ? nullptr : bound.c_str();
    o.threads = threads;
    if (unconfirmed) o.unconfirmed = *unconfirmed ? 1 : -1;
    o.segment = segment;
    o.schedule = static_cast<laconic_schedule>(schedule);
    if (verify) o.verify = *verify ? 1 : -1;
    o.mode = static_cast<laconic_mode>(mode);
    o.codec = static_cast<laconic_codec>(codec);
    o.framework = static_cast<laconic_framework>(framework);
    if (check) o.check = *check ? 1 : -1;
    return o;
  }

  bool operator==(const Options&) const = default;
};

}  // namespace public_v1
}  // namespace laconic
