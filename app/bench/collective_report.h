// The result of `laconic bench <collective>` as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/collective_bench.h"

namespace laconic::app {

/// The table of the last size; that of the first begins with what is measured.
std::string text_of_last(const CollectiveResult& result);
nlohmann::json to_json(const CollectiveResult& result);

/// 0 when every mode kept what it promises, and Laconic gave all ranks the same bits where all get the same;
/// bound_violated otherwise.
int exit_code_for(const CollectiveResult& result);

}  // namespace laconic::app
