#include "preload/serving.h"

#include <cstdio>
#include <fstream>

namespace laconic::preload {

void warn(const std::string& what) noexcept { std::fprintf(stderr, "laconic: %s\n", what.c_str()); }

const Rule* rule_for(const Situation& call, const Policy& policy, const Config& config, std::string_view library,
                     Tally& tally) {
  const Rule* const rule = policy.match(call);
  if (rule == nullptr) {
    tally.pass("smaller than what a rule asks for, or its rule says off");
    return nullptr;
  }
  if (call.op != Op::none && is_float(call.dtype) && options_under(*rule, config).bound.kind == BoundKind::lossless) {
    tally.pass("reductions of floating-point numbers without a bound are " + std::string(library) +
               "'s own, to the last bit");
    return nullptr;
  }
  return rule;
}

void write_report(const Tally& tally, Heading heading, const Config& config, const std::string& suffix) {
  heading.policy = (config.bound ? "bound " + config.bound->to_string() : std::string("no bound")) +
                   (config.policy.empty() ? "" : ", policy " + config.policy);
  if (config.report == "summary") {
    std::fputs(tally.to_text(heading).c_str(), stderr);
    return;
  }
  const std::string file = config.report + suffix;
  std::ofstream out(file);
  out << tally.to_json(heading);
  if (!out.flush()) warn("the report cannot be written to '" + file + "'");
}

}  // namespace laconic::preload
