#include "preload/mpi/caller.h"

#include <dlfcn.h>
#include <unwind.h>

#include <cstdio>
#include <string_view>

namespace laconic::preload {
namespace {

struct Search {
  const void* own;  ///< where this library begins
  std::string found;
};

std::string name_of(const Dl_info& place, const char* at) {
  if (place.dli_sname != nullptr) return place.dli_sname;
  const std::string_view file = place.dli_fname;
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%tx", at - static_cast<const char*>(place.dli_fbase));
  return std::string(file.substr(file.rfind('/') + 1)) + offset;
}

/// Called for each function from the innermost on, until it says that it has seen enough.
_Unwind_Reason_Code look(_Unwind_Context* context, void* given) {
  Search& search = *static_cast<Search*>(given);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const at = reinterpret_cast<const char*>(_Unwind_GetIP(context));
  Dl_info place{};
  if (::dladdr(at, &place) == 0 || place.dli_fname == nullptr) return _URC_END_OF_STACK;
  const std::string_view file = place.dli_fname;
  if (place.dli_fbase == search.own || file.substr(file.rfind('/') + 1).starts_with("libmpi")) return _URC_NO_REASON;
  search.found = name_of(place, at);
  return _URC_END_OF_STACK;
}

}  // namespace

std::string caller() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&caller), &own) == 0) return {};
  Search search{own.dli_fbase, {}};
  _Unwind_Backtrace(look, &search);
  return search.found;
}

}  // namespace laconic::preload
