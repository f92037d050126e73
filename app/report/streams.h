// The three standard streams.
#pragma once

#include <string>

namespace laconic::app {

/// To be called first: no file that is opened later takes the place of a standard stream that is closed. What is
/// written to a closed stdout still fails.
void open_standard_streams();

/// On stderr. That nobody can read it changes nothing else.
void complain(const std::string& text) noexcept;

}  // namespace laconic::app
