#include "core/stats.h"

#include <nlohmann/json.hpp>

namespace laconic {

double Stats::ratio() const {
  if (wire_bytes == 0) return 1;
  return static_cast<double>(original_bytes) / static_cast<double>(wire_bytes);
}

void Stats::merge(const Stats& other) {
  calls += other.calls;
  plain_calls += other.plain_calls;
  original_bytes += other.original_bytes;
  wire_bytes += other.wire_bytes;
  codec_seconds += other.codec_seconds;
  wire_seconds += other.wire_seconds;
  compute_seconds += other.compute_seconds;
  other_seconds += other.other_seconds;
  for (const auto& [reason, n] : other.fallbacks) fallbacks[reason] += n;
}

std::string Stats::to_json() const {
  nlohmann::ordered_json out = {
      {"calls", calls},
      {"plain_calls", plain_calls},
      {"original_bytes", original_bytes},
      {"wire_bytes", wire_bytes},
      {"ratio", ratio()},
      {"codec_seconds", codec_seconds},
      {"wire_seconds", wire_seconds},
      {"compute_seconds", compute_seconds},
      {"other_seconds", other_seconds},
      {"fallbacks", fallbacks},
  };
  // A reason may quote a path or a name of the user's: bytes that are no UTF-8 are replaced, never a throw.
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace laconic
