// Numbers for JSON, which knows neither infinity nor NaN.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

namespace laconic::app {

inline nlohmann::json finite_or_null(double v) {
  return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr);
}

}  // namespace laconic::app
