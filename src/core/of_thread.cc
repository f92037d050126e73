#include "core/of_thread.h"

#include <cxxabi.h>

namespace laconic {

void at_thread_end(void (*destroy)(void*), void* object) {
  static char here;  // an address of what is not to be unloaded before
  abi::__cxa_thread_atexit(destroy, object, &here);
}

}  // namespace laconic
