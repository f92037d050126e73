#include "transport/transport.h"

#include <utility>

namespace laconic {

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

void Request::wait() {
  if (state_ == nullptr) return;
  const std::unique_ptr<State> state = std::move(state_);
  state->wait();
  received_ = state->received;
}

}  // namespace laconic
