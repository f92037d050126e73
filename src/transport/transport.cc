#include "transport/transport.h"

#include <utility>

#include "core/error.h"

namespace laconic {

bool Request::State::await(bool /*patient*/) { return test(); }

std::unique_ptr<Transport> Transport::companion() {
  throw Error(Code::unsupported, "over " + description() + " only one thread at a time has messages under way");
}

// A request that throws is over: what it waited for will not come any more.
bool Request::test() {
  if (state_ == nullptr) return true;
  std::unique_ptr<State> state = std::move(state_);
  if (!state->test()) {
    state_ = std::move(state);
    return false;
  }
  received_ = state->received;
  return true;
}

bool Request::await(bool patient) {
  if (state_ == nullptr) return true;
  std::unique_ptr<State> state = std::move(state_);
  if (!state->await(patient)) {
    state_ = std::move(state);
    return false;
  }
  received_ = state->received;
  return true;
}

void Request::wait() {
  if (state_ == nullptr) return;
  const std::unique_ptr<State> state = std::move(state_);
  state->wait();
  received_ = state->received;
}

}  // namespace laconic
