#include "preload/mpi/caller.h"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "preload/mpi/symbol_table.h"

namespace laconic::preload {
namespace {

struct Search {
  const void* own;  ///< where this library begins
  const void* mpi;  ///< and MPI's
  std::string found;
};

/// Where a file begins that has this function.
template <typename Function>
const void* file_of(Function* function) {
  Dl_info place{};
  return ::dladdr(reinterpret_cast<const void*>(function), &place) != 0 ? place.dli_fbase : nullptr;
}

/// Files of MPI's entries for other languages.
bool is_of_mpi(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const char* const name :
       {"libmpi_mpifh.", "libmpi_usempi", "libmpi_cxx.", "libmpifort", "libmpicxx.", "libmpichfort.", "libmpichcxx."})
    if (file.starts_with(name)) return true;
  return false;
}

/// The file that is mapped there; empty: none. (Of the program the loader knows no path, and /proc/self/exe is the
/// loader where that was called with the program as an argument.)
std::string path_at(const char* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {  // 55d4-55d8 r-xp 0000 fe:01 123   /path
    char* next = line.data();
    const std::uintptr_t first = std::strtoull(next, &next, 16);
    const std::uintptr_t end = *next == '-' ? std::strtoull(next + 1, &next, 16) : 0;
    if (address < first || address >= end) continue;
    const std::size_t path = line.find('/');
    return path != std::string::npos ? line.substr(path) : "";
  }
  return {};
}

/// What the file has for itself only.
std::string own_name_of(const Dl_info& place, const link_map& file, const char* at) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, SymbolTable::Address>, SymbolTable> tables;
  const std::lock_guard lock(mutex);
  const auto key = std::pair(std::string(place.dli_fname), file.l_addr);
  auto known = tables.find(key);
  if (known == tables.end()) known = tables.try_emplace(key, path_at(at).c_str()).first;
  return std::string(known->second.function_at(reinterpret_cast<SymbolTable::Address>(at) - file.l_addr));
}

std::string name_of(const Dl_info& place, const link_map& loaded, const char* at) {
  if (place.dli_sname != nullptr) return place.dli_sname;
  if (const std::string name = own_name_of(place, loaded, at - 1); !name.empty()) return name;
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
  // Where it returns to may be the next function, if it ends with the call.
  link_map* loaded = nullptr;
  const int known = ::dladdr1(at - 1, &place, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP);
  if (known == 0 || place.dli_fname == nullptr || loaded == nullptr) return _URC_END_OF_STACK;
  if (place.dli_fbase == search.own || place.dli_fbase == search.mpi || is_of_mpi(place.dli_fname))
    return _URC_NO_REASON;
  search.found = name_of(place, *loaded, at);
  return _URC_END_OF_STACK;
}

}  // namespace

std::string caller() {
  static const void* const own = file_of(&caller);
  static const void* const mpi = file_of(&PMPI_Init);
  Search search{own, mpi, {}};
  _Unwind_Backtrace(look, &search);
  return search.found;
}

bool is_of_another_language(const void* code) {
  Dl_info place{};
  return ::dladdr(code, &place) != 0 && place.dli_fname != nullptr && is_of_mpi(place.dli_fname);
}

}  // namespace laconic::preload
