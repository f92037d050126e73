// The result of `laconic bench error` as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/error_bench.h"

namespace laconic::app {

/// `per_field`: a line for each field too.
std::string to_text(const ErrorBenchOptions& options, const ErrorResult& result, bool per_field);
nlohmann::json to_json(const ErrorBenchOptions& options, const ErrorResult& result);

}  // namespace laconic::app
