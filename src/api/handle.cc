#include "api/handle.h"

#include <cstring>

#include "core/config.h"

namespace laconic::api {
namespace {

thread_local std::string last_error;

}  // namespace

int report(Code code, const std::string& text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();  // no memory even for the words: the code has to do
  }
  return static_cast<int>(code);
}

Options options_from_environment() {
  Options o;
  o.bound = config().bound.value_or(Bound{});
  o.threads = config().threads;
  o.verify = config().verify;
  o.mode = config().mode;
  return o;
}

Options options_from(const laconic_options* given, const Options& base) {
  if (given == nullptr) return base;
  // A program compiled against an older header knows fewer fields; none of them was ever removed.
  constexpr std::size_t first_version = offsetof(laconic_options, segment) + sizeof given->segment;
  if (given->struct_size < first_version) {
    throw Error(Code::invalid_argument,
                "options.struct_size is " + std::to_string(given->struct_size) + ": begin with LACONIC_OPTIONS_INIT");
  }
  Options o = base;
  if (given->bound != nullptr) o.bound = Bound::parse(given->bound);
  if (given->threads != 0) o.threads = given->threads;
  o.confirm = given->unconfirmed == 0;
  if (given->segment != 0) o.segment_values = given->segment;
  if (given->struct_size >= offsetof(laconic_options, schedule) + sizeof given->schedule) {
    if (given->schedule < LACONIC_AUTOMATIC || given->schedule > LACONIC_TWO_LEVEL) {
      throw Error(Code::invalid_argument, "options.schedule is " + std::to_string(static_cast<int>(given->schedule)) +
                                              ": want one of laconic_schedule");
    }
    o.schedule = static_cast<Schedule>(given->schedule);
  }
  if (given->struct_size >= offsetof(laconic_options, verify) + sizeof given->verify && given->verify != 0) {
    o.verify = given->verify > 0;
  }
  if (given->struct_size >= offsetof(laconic_options, mode) + sizeof given->mode &&
      given->mode != LACONIC_MODE_DEFAULT) {
    if (given->mode < LACONIC_MODE_DEFAULT || given->mode > LACONIC_MODE_PLAIN) {
      throw Error(Code::invalid_argument,
                  "options.mode is " + std::to_string(static_cast<int>(given->mode)) + ": want one of laconic_mode");
    }
    o.mode = static_cast<Mode>(given->mode - LACONIC_MODE_AUTOMATIC);
  }
  return o;
}

}  // namespace laconic::api

char laconic_in_place = 0;

extern "C" {

const char* laconic_version(void) { return LACONIC_VERSION; }

const char* laconic_last_error(void) { return laconic::api::last_error.c_str(); }

const char* laconic_error_name(int error) { return laconic::name_of(static_cast<laconic::Code>(error)); }

}  // extern "C"
