#include "exit_code.h"

#include <fmt/core.h>

#include <new>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace laconic::app {
namespace {

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

int report(bool json, Exit code, const std::string& text) {
  fmt::print(stderr, "laconic: {}\n", text);
  if (json) fmt::print("{}\n", nlohmann::json{{"error", text}, {"exit", static_cast<int>(code)}}.dump());
  return static_cast<int>(code);
}

}  // namespace

const char* exit_code_help() {
  return "Exit codes: 0 ok, 2 wrong usage, 3 input missing or unreadable, 4 wrong size, dims or type of an input,\n"
         "5 output failed (full disk, permissions, exists), 6 corrupt stream, 7 bound violated or verification "
         "failed,\n"
         "8 communication failed, 70 internal error.";
}

int guarded(bool json, int (*command)(void* state), void* state) {
  try {
    return command(state);
  } catch (const Failure& e) {
    return report(json, e.code(), e.what());
  } catch (const Error& e) {
    return report(json, exit_for(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return report(json, Exit::internal, "out of memory");
  } catch (const std::exception& e) {
    return report(json, Exit::internal, fmt::format("internal error: {}", e.what()));
  }
}

}  // namespace laconic::app
