// The result of a stack as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "stack/measure.h"

namespace laconic::app {

std::string to_text(const StackResult& result);
nlohmann::json to_json(const StackResult& result);

/// 0 when every value is within the bound and all ranks agree; bound_violated otherwise.
int exit_code_for(const StackResult& result);

}  // namespace laconic::app
