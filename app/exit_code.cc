#include "exit_code.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "core/error.h"
#include "report/json.h"
#include "report/streams.h"

namespace laconic::app {
namespace {

/// As it may be shown, with the two lines at its end where they are what was wrong and a mark below it.
std::string shown(const std::string& text) {
  const std::size_t mark = text.ends_with(" ^") ? text.rfind('\n') : std::string::npos;
  if (mark == std::string::npos || text.find_first_not_of(' ', mark + 1) != text.size() - 1) return printable(text);
  const std::size_t marked = text.rfind('\n', mark - 1);
  if (mark == 0 || marked == std::string::npos) return printable(text);
  return printable(text.substr(0, marked)) + "\n" + printable(text.substr(marked + 1, mark - marked - 1)) +
         text.substr(mark);
}

}  // namespace

Exit exit_for(Code code) {
  switch (code) {
    case Code::ok:
      return Exit::ok;
    case Code::invalid_argument:
    case Code::unsupported:
      return Exit::usage;
    case Code::mismatch:
      return Exit::bad_data;
    case Code::corrupt:
      return Exit::corrupt;
    case Code::transport:
      return Exit::communication;
    case Code::io:
      return Exit::no_input;
    case Code::too_small:
    case Code::internal:
      return Exit::internal;
  }
  return Exit::internal;
}

const char* exit_code_help() {
  return "Exit codes: 0 ok, 2 wrong usage, 3 input missing or unreadable, 4 wrong size, dims or type of an input,\n"
         "5 output failed (full disk, permissions, exists), 6 corrupt stream, 7 bound violated or verification "
         "failed,\n"
         "8 communication failed, 70 internal error.";
}

void print_failure(int code, const std::string& text) {
  if (std::ferror(stdout) != 0) return;
  try {
    print_json({{"error", text}, {"exit", code}});
  } catch (const std::exception& e) {  // whoever reports a failure is told of that one
    complain(fmt::format("laconic: stdout cannot be written: {}\n", e.what()));
  }
}

int report_failure(bool json, Exit code, const std::string& text) {
  complain(fmt::format("laconic: {}\n", shown(text)));
  if (json) print_failure(static_cast<int>(code), text);
  return static_cast<int>(code);
}

int checked_output(bool json, int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return report_failure(json, Exit::no_output, fmt::format("stdout cannot be written: {}", std::strerror(errno)));
}

int guarded(bool json, int (*command)(void* state), void* state, std::string* said) {
  const auto report = [&](Exit code, const std::string& text) {
    if (said != nullptr) *said = text;
    return report_failure(json, code, text);
  };
  try {
    return checked_output(json, command(state));
  } catch (const Failure& e) {
    return report(e.code(), e.what());
  } catch (const Error& e) {
    return report(exit_for(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return report(Exit::internal, "out of memory");
  } catch (const std::exception& e) {
    if (std::ferror(stdout) != 0) return checked_output(json, 0);
    return report(Exit::internal, fmt::format("internal error: {}", e.what()));
  }
}

}  // namespace laconic::app
