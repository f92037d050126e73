#include "api/handle.h"

#include <cstring>

#include "core/config.h"
#include "core/of_thread.h"

namespace laconic::api {
namespace {

thread_local OfThread<std::string> last_error;

template <typename Enum>
void require_one_of(const char* name, Enum value, Enum first, Enum last) {
  if (value >= first && value <= last) return;
  throw Error(Code::invalid_argument, "options." + std::string(name) + " is " +
                                          std::to_string(static_cast<int>(value)) + ": want one of laconic_" + name);
}

}  // namespace

int report(Code code, const std::string& text) noexcept {
  try {
    last_error.get() = text;
  } catch (...) {
    last_error.get().clear();  // no memory even for the words: the code has to do
  }
  return static_cast<int>(code);
}

Options options_from_environment() {
  Options o;
  o.bound = config().bound.value_or(Bound{});
  o.threads = config().threads;
  o.verify = config().verify;
  o.check = config().check;
  o.mode = config().mode;
  return o;
}

void read_options(const laconic_options* given, Options& o) {
  if (given == nullptr) return;
  // A program compiled against an older header knows fewer fields; none of them was ever removed.
  constexpr std::size_t first_version = offsetof(laconic_options, segment) + sizeof given->segment;
  if (given->struct_size < first_version) {
    throw Error(Code::invalid_argument,
                "options.struct_size is " + std::to_string(given->struct_size) + ": begin with LACONIC_OPTIONS_INIT");
  }
  if (given->threads != 0) o.threads = given->threads;
  if (given->unconfirmed != 0) o.confirm = given->unconfirmed < 0;
  if (given->segment != 0) o.segment_values = given->segment;
  if (given->struct_size >= offsetof(laconic_options, schedule) + sizeof given->schedule) {
    require_one_of("schedule", given->schedule, LACONIC_AUTOMATIC, LACONIC_DIRECT);
    if (given->schedule != LACONIC_AUTOMATIC) o.schedule = static_cast<Schedule>(given->schedule);
  }
  if (given->struct_size >= offsetof(laconic_options, verify) + sizeof given->verify && given->verify != 0) {
    o.verify = given->verify > 0;
  }
  if (given->struct_size >= offsetof(laconic_options, mode) + sizeof given->mode &&
      given->mode != LACONIC_MODE_DEFAULT) {
    require_one_of("mode", given->mode, LACONIC_MODE_DEFAULT, LACONIC_MODE_PLAIN);
    o.mode = static_cast<Mode>(given->mode - LACONIC_MODE_AUTOMATIC);
  }
  if (given->struct_size >= offsetof(laconic_options, codec) + sizeof given->codec &&
      given->codec != LACONIC_CODEC_DEFAULT) {
    require_one_of("codec", given->codec, LACONIC_SLICE, LACONIC_ZSTD);
    o.codec = static_cast<CodecId>(given->codec);
  }
  if (given->struct_size >= offsetof(laconic_options, framework) + sizeof given->framework &&
      given->framework != LACONIC_FRAMEWORK_DEFAULT) {
    require_one_of("framework", given->framework, LACONIC_ON_GRID, LACONIC_POINT_TO_POINT);
    o.framework = static_cast<Framework>(given->framework);
  }
  if (given->struct_size >= offsetof(laconic_options, check) + sizeof given->check && given->check != 0) {
    o.check = given->check > 0;
  }
  if (given->bound != nullptr) o.bound = Bound::parse(given->bound);
}

Options options_from(const laconic_options* given, const Options& base) {
  Options o = base;
  read_options(given, o);
  return o;
}

}  // namespace laconic::api

char laconic_in_place = 0;

extern "C" {

const char* laconic_version(void) { return LACONIC_VERSION; }

const char* laconic_last_error(void) { return laconic::api::last_error.get().c_str(); }

const char* laconic_error_name(int error) { return laconic::name_of(static_cast<laconic::Code>(error)); }

}  // extern "C"
