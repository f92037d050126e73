#include "report/json.h"

#include <fmt/core.h>

namespace laconic::app {

void print_json(const nlohmann::json& j) {
  fmt::print("{}\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace laconic::app
