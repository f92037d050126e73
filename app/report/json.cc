#include "report/json.h"

#include "report/streams.h"

namespace laconic::app {

void print_json(const nlohmann::json& j) {
  report(j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace laconic::app
