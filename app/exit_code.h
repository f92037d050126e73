// Exit codes of the laconic command, and the exception that carries one. They are part of the command's interface.
#pragma once

#include <stdexcept>
#include <string>

#include "core/error.h"

namespace laconic::app {

enum class Exit : int {
  ok = 0,
  usage = 2,           ///< wrong option or argument
  no_input = 3,        ///< an input file is missing or cannot be read
  bad_data = 4,        ///< an input's size, dims, dtype or header is not what it should be
  no_output = 5,       ///< the output cannot be written (full disk, permissions, already there)
  corrupt = 6,         ///< a compressed stream is damaged
  bound_violated = 7,  ///< verification found a value outside the bound, or ranks with different bits
  communication = 8,   ///< MPI or another carrier failed
  internal = 70,       ///< a defect of Laconic
};

/// What the library's errors come to.
Exit exit_for(Code code);

/// The text shown at the end of --help.
const char* exit_code_help();

/// A failure that a person can act on: what() names the file or option, what is wrong, and what would work.
class Failure : public std::runtime_error {
 public:
  Failure(Exit code, const std::string& what) : std::runtime_error(what), code_(code) {}
  [[nodiscard]] Exit code() const noexcept { return code_; }

 private:
  Exit code_;
};

/// Says what failed as an object on stdout.
void print_failure(int code, const std::string& text);

/// Says what failed: a message on stderr, with json also that. Returns the code.
int report_failure(bool json, Exit code, const std::string& text);

/// Exit::no_output, reported, if anything that went to stdout could not be written; else `code`.
int checked_output(bool json, int code);

/// Runs `command` and turns whatever it throws, and an output that could not be written, into a message and an exit
/// code. `said`: not null: gets the message.
int guarded(bool json, int (*command)(void* state), void* state, std::string* said = nullptr);

}  // namespace laconic::app
