// The three standard streams.
#pragma once

#include <string>
#include <string_view>

namespace laconic::app {

/// To be called first: no file that is opened later takes the place of a standard stream that is closed. What is
/// written to a closed stdout still fails.
void open_standard_streams();

/// A name as it may be shown: control characters, which a terminal would obey, as \n or \x1b.
std::string printable(std::string_view text);

/// On stderr. That nobody can read it changes nothing else.
void complain(const std::string& text) noexcept;

/// What a command has to say of what it did: on stdout, or after keep_reports_off_stdout() on stderr.
void report(const std::string& text);

/// An output's data go there.
void keep_reports_off_stdout();

}  // namespace laconic::app
