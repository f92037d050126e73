// Room on the stack for what Laconic does on a thread of the program's.
#pragma once

#include <functional>

namespace laconic {

/// Whether this thread's stack has room enough left (256 KiB). Not where nobody can tell, since the program itself has
/// put the thread on another stack (coroutines).
bool has_room();

/// Calls work() now and on this thread, but on a stack of Laconic's. Throws what work() throws. Thread safe.
void call_on_own_stack(const std::function<void()>& work);

/// Calls work(), where there is room for it.
template <typename Work>
void with_room(Work&& work) {
  if (has_room())
    work();
  else
    call_on_own_stack(work);
}

}  // namespace laconic
