// What the drop-in libraries have in common beside policy and tally.
#pragma once

#include <string>
#include <string_view>

#include "core/config.h"
#include "preload/policy.h"
#include "preload/tally.h"

namespace laconic::preload {

/// A warning is asked for by nobody; a program that silently runs without what it was started with is worse.
void warn(const std::string& what) noexcept;

/// The rule under which a call is served; null, and counted: it is `library`'s ("MPI").
const Rule* rule_for(const Situation& call, const Policy& policy, const Config& config, std::string_view library,
                     Tally& tally);

/// Where LACONIC_REPORT wishes it: "summary" on standard error, else JSON in that file with `suffix` after its name.
/// The heading's policy is filled in.
void write_report(const Tally& tally, Heading heading, const Config& config, const std::string& suffix = {});

}  // namespace laconic::preload
