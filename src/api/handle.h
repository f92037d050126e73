// What stands behind the C interface's opaque pointer, and how C++ errors become its codes.
#pragma once

#include <laconic/laconic.h>

#include <exception>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>

#include "collective/background.h"
#include "collective/communicator.h"
#include "collective/mailroom.h"
#include "core/error.h"

/// Collective to construct and to destroy.
struct laconic_comm {
  laconic_comm(std::unique_ptr<laconic::Transport> transport, laconic::Options defaults)
      : comm(std::move(transport), defaults) {}
  /// Makes what non-blocking calls need, if there can be any. Collective.
  void begin_background() {
    try {
      auto made = std::make_unique<laconic::Background>(comm.transport().duplicate());
      if (memory != nullptr) lay_arrays_in(*memory, *made);
      background = std::move(made);
    } catch (const laconic::Error& e) {
      if (e.code() != laconic::Code::unsupported) throw;
      no_background = e.what();
    }
  }
  /// What a call in the background has left in its middle ends the communicator's own calls, too.
  void notice_failure() {
    const bool messages = mailroom == nullptr || mailroom->usable();
    const bool collectives = background == nullptr || background->usable();
    if (!messages || !collectives) comm.mark_unusable();
  }
  /// Throws if it cannot be used any more.
  void require_usable() {
    notice_failure();
    comm.require_usable();
  }
  /// get() gives the report of a call in the background, or throws what that threw.
  template <typename Get>
  void take_report(Get get) {
    try {
      comm.record(get());
    } catch (...) {
      notice_failure();
      throw;
    }
  }
  /// Before the first call: where arrays lie from now on.
  void lay_arrays_in(std::unique_ptr<laconic::Memory> place) {
    if (background != nullptr) lay_arrays_in(*place, *background);
    comm.use(*place);
    memory = std::move(place);
  }

  std::unique_ptr<laconic::Memory> memory;             ///< of arrays, where it is not the host's
  std::unique_ptr<laconic::Memory> background_memory;  ///< the same for non-blocking calls
  laconic::Communicator comm;
  std::unique_ptr<laconic::Background> background;  ///< for non-blocking calls; null: there are none, or none yet
  std::string no_background;                        ///< why there can be none
  std::unique_ptr<laconic::Mailroom> mailroom;      ///< for non-blocking messages, made with the first
  /// Goes with it: requests that are left then know.
  std::shared_ptr<laconic_comm> self{this, [](laconic_comm*) {}};

 private:
  void lay_arrays_in(laconic::Memory& place, laconic::Background& of) {
    auto other = place.for_another_thread();
    of.use(other != nullptr ? *other : place);
    background_memory = std::move(other);
  }
};

/// A non-blocking call.
struct laconic_request {
  std::future<laconic::Report> result;
  std::weak_ptr<laconic_comm> comm;
  std::optional<laconic::Mailroom::Submitted> message{};  ///< instead of a result
};

namespace laconic::api {

/// Keeps the text for laconic_last_error() and returns the code.
int report(Code code, const std::string& text) noexcept;

/// What a C caller says, over what `o` has. Throws Error(invalid_argument): the bound is read last, so that the mode is
/// known where a text is wrong.
void read_options(const laconic_options* given, Options& o);
/// The options that it means; `base` supplies what it leaves open.
Options options_from(const laconic_options* given, const Options& base);

/// Throws Error(invalid_argument) where `out` is null, or too small.
void fill(laconic_stats* out, const Stats& stats, const Report& last);

/// Bound, threads and verification as the environment has them. Throws Error(invalid_argument).
Options options_from_environment();

/// Runs work and turns what it throws into a code.
template <typename Work>
int guarded(Work&& work) noexcept {
  try {
    work();
    return LACONIC_OK;
  } catch (const Error& e) {
    return report(e.code(), e.what());
  } catch (const std::bad_alloc& e) {
    return report(Code::internal, typeid(e) == typeid(std::bad_alloc) ? "out of memory" : e.what());
  } catch (const std::exception& e) {
    return report(Code::internal, e.what());
  }
}

}  // namespace laconic::api
