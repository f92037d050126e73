#include "collective/options.h"

#include <string>

#include "core/config.h"
#include "core/error.h"

namespace laconic {

const char* name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::automatic:
      return "automatic";
    case Schedule::ring:
      return "ring";
    case Schedule::recursive_doubling:
      return "recursive doubling";
    case Schedule::rabenseifner:
      return "rabenseifner";
    case Schedule::two_level:
      return "two-level";
    case Schedule::direct:
      return "direct";
  }
  return "?";
}

const char* name_of(Framework framework) {
  switch (framework) {
    case Framework::automatic:
      return "automatic";
    case Framework::on_grid:
      return "on-grid";
    case Framework::stepwise:
      return "stepwise";
    case Framework::point_to_point:
      return "point-to-point";
  }
  return "?";
}

void require_threads(int threads) {
  if (threads >= 1 && threads <= most_threads) return;
  throw Error(Code::invalid_argument,
              "threads = " + std::to_string(threads) + ": want 1 to " + std::to_string(most_threads));
}

}  // namespace laconic
