// A policy as the command takes it: what is wrong with its file has the exit codes of an input.
#pragma once

#include <string>

#include "preload/policy.h"

namespace laconic::app {

/// Throws Failure: no_input where it cannot be read, bad_data where it has a mistake.
preload::Policy read_policy(const std::string& path);

}  // namespace laconic::app
