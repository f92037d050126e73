// JSON of the command's reports.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

namespace laconic::app {

/// JSON knows neither infinity nor NaN.
inline nlohmann::json finite_or_null(double v) {
  return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr);
}

/// One object, by report(). What is not UTF-8, as a file's name may be, has U+FFFD in its place.
void print_json(const nlohmann::json& j);

}  // namespace laconic::app
