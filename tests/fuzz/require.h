// How a fuzz target says that it has found something.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace laconic::test {

/// `where`: the target or the codec.
inline void require(bool holds, const char* what, std::string_view where) {
  if (holds) return;
  std::fprintf(stderr, "%s: %s\n", std::string(where).c_str(), what);
  std::abort();
}

}  // namespace laconic::test
