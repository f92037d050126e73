#include "preload/mpi/entries.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "preload/mpi/loaded_file.h"
#include "preload/mpi/process.h"

namespace laconic::preload {
namespace {

using Address = LoadedFile::Address;
using Symbol = LoadedFile::Symbol;
using Names = std::set<std::string, std::less<>>;

/// What was behind this library under the names of MPI's functions whose addresses have been replaced. Written while
/// this library is loaded, by one thread; never freed, since programs call MPI until their very end.
std::map<std::string, void*, std::less<>>& replaced() {
  static auto& all = *new std::map<std::string, void*, std::less<>>;
  return all;
}

bool is_function_for_others(const Symbol& symbol) {
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
}

/// MPI has each function by one of these, too, for tools that wrap the other.
bool is_name_for_tools(std::string_view name) { return name.starts_with("PMPI_") || name.starts_with("pmpi_"); }

/// Whether a file has functions of MPI's own. A tool that only wraps them may be called as MPI's libraries are: mpiP's
/// is libmpiP.so.
bool has_mpis_own(const LoadedFile& file) {
  if (!is_mpi_library(file.name())) return false;
  const auto symbols = file.symbols();
  return std::any_of(symbols.begin(), symbols.end(), [&](const Symbol& symbol) {
    return is_function_for_others(symbol) && is_name_for_tools(file.names() + symbol.st_name);
  });
}

/// Whether a tool's library calls MPI by the names that MPI has for tools, and looks for no function by itself: it
/// would find ours where it expects MPI's, and call itself for ever.
bool calls_mpi_as_tools_do(const LoadedFile& tool) {
  bool calls = false;
  for (const Symbol& symbol : tool.symbols()) {
    if (symbol.st_shndx != SHN_UNDEF) continue;
    const std::string_view name = tool.names() + symbol.st_name;
    if (name == "dlsym" || name == "dlvsym") return false;
    calls = calls || is_name_for_tools(name);
  }
  return calls;
}

/// Changes the access to some of a file's memory, whose segment gives `access`. Systems may refuse it for instructions.
bool set_access(Address first, std::size_t bytes, int access) {
  const auto page = static_cast<Address>(::sysconf(_SC_PAGESIZE));
  const Address begin = first / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return ::mprotect(reinterpret_cast<void*>(begin), first + bytes - begin, access) == 0;
}

/// A file's symbols, which may be changed while there is one of these.
class ChangingSymbols {
 public:
  explicit ChangingSymbols(const LoadedFile& file)
      : first_(reinterpret_cast<Address>(file.symbols().data())), bytes_(file.symbols().size_bytes()) {
    const unsigned access = file.access_to(first_);
    had_ = ((access & PF_R) != 0 ? PROT_READ : 0) | ((access & PF_W) != 0 ? PROT_WRITE : 0) |
           ((access & PF_X) != 0 ? PROT_EXEC : 0);
    may_ = set_access(first_, bytes_, had_ | PROT_WRITE);
  }
  ChangingSymbols(const ChangingSymbols&) = delete;
  ChangingSymbols& operator=(const ChangingSymbols&) = delete;
  ~ChangingSymbols() {
    if (may_) set_access(first_, bytes_, had_);
  }
  [[nodiscard]] bool may() const { return may_; }
  /// Where it is found from now on, relative to its file; 0: nowhere. (Of a file that lies below, the difference is
  /// unsigned: it is added without a carry.)
  static void set(const Symbol* symbol, Address value) { const_cast<Symbol*>(symbol)->st_value = value; }

 private:
  Address first_;
  std::size_t bytes_;
  int had_ = 0;
  bool may_ = false;
};

/// What this library has for others.
class Entries {
 public:
  Entries(const LoadedFile& own, const std::vector<LoadedFile>& all) : own_(own), all_(all) {
    for (const Symbol& symbol : own.symbols())
      if (is_function_for_others(symbol))
        addresses_.emplace(own.names() + symbol.st_name, own.base() + symbol.st_value);
  }

  /// For who asks `file`, a library of MPI.
  void give_to(const LoadedFile& file) {
    std::vector<const Symbol*> found;
    for (const Symbol& symbol : file.symbols()) {
      if (!is_function_for_others(symbol)) continue;
      const char* const name = file.names() + symbol.st_name;
      const auto at = addresses_.find(std::string_view(name));
      if (at != addresses_.end() && is_between(name, at->second, file.base() + symbol.st_value))
        found.push_back(&symbol);
    }
    if (found.empty()) return;
    const ChangingSymbols changing(file);
    if (!changing.may()) return;
    for (const Symbol* const symbol : found) {
      const char* const name = file.names() + symbol->st_name;
      replaced().emplace(name, ::dlsym(RTLD_NEXT, name));
      ChangingSymbols::set(symbol, addresses_.find(std::string_view(name))->second - file.base());
    }
  }

  /// All functions, or those of which which(name) holds.
  [[nodiscard]] Names names(bool (*which)(const char*) = nullptr) const {
    Names names;
    for (const auto& [name, address] : addresses_)
      if (which == nullptr || which(name.c_str())) names.insert(name);
    return names;
  }

  /// Nobody finds these any more.
  void hide(const Names& names) const {
    const ChangingSymbols changing(own_);
    if (!changing.may()) return;
    for (const Symbol& symbol : own_.symbols()) {
      if (is_function_for_others(symbol) && names.contains(std::string_view(own_.names() + symbol.st_name)))
        ChangingSymbols::set(&symbol, 0);
    }
  }

  /// What `file` has found here of these becomes what it would have found behind, which may be nothing where it can do
  /// without (weak symbols). (What it has not looked for so far, it will not find here once that is hidden.)
  void take_from(const LoadedFile& file, const Names& names) const {
    if (file.base() == own_.base()) return;
    const auto* const symbols = file.at<const Symbol>(DT_SYMTAB);
    if (symbols == nullptr || file.names() == nullptr) return;
    for (const auto& table : file.relocations()) {
      for (const LoadedFile::Relocation& each : table) {
        const Symbol& symbol = symbols[ELF64_R_SYM(each.r_info)];
        if (names.contains(std::string_view(file.names() + symbol.st_name))) take_from(file, each, symbol);
      }
    }
  }

 private:
  /// Whether the program's calls of this name meet `ours`, and after that `mpi`, of MPI's library: calls that are
  /// wrapped before they come here are not served. Between may be a tool that does not look for MPI's function.
  bool is_between(const char* name, Address ours, Address mpi) {
    if (reinterpret_cast<Address>(::dlsym(RTLD_DEFAULT, name)) != ours) return false;
    const void* const behind = ::dlsym(RTLD_NEXT, name);
    if (reinterpret_cast<Address>(behind) == mpi) return true;
    Dl_info tool{};
    if (behind == nullptr || ::dladdr(behind, &tool) == 0) return false;
    const auto base = reinterpret_cast<Address>(tool.dli_fbase);
    const auto [known, is_new] = calls_mpi_.emplace(base, false);
    const auto file = std::find_if(all_.begin(), all_.end(), [&](const LoadedFile& f) { return f.base() == base; });
    if (is_new && file != all_.end()) known->second = calls_mpi_as_tools_do(*file);
    return known->second;
  }

  void take_from(const LoadedFile& file, const LoadedFile::Relocation& relocation, const Symbol& symbol) const {
    const char* const name = file.names() + symbol.st_name;
    const auto at = addresses_.find(std::string_view(name));
    if (at == addresses_.end()) return;
    const Address place = file.base() + relocation.r_offset;
    auto* const address = reinterpret_cast<Address*>(place);  // NOLINT(performance-no-int-to-ptr)
    const auto behind = reinterpret_cast<Address>(::dlsym(RTLD_NEXT, name));
    if (*address != at->second || (behind == 0 && ELF64_ST_BIND(symbol.st_info) != STB_WEAK)) return;
    if (!set_access(place, sizeof place, PROT_READ | PROT_WRITE)) return;
    *address = behind;
    if (file.is_read_only_now(place)) set_access(place, sizeof place, PROT_READ);
  }

  const LoadedFile& own_;
  const std::vector<LoadedFile>& all_;
  std::map<Address, bool> calls_mpi_;  ///< of tools, by their files: see above
  std::map<std::string, Address, std::less<>> addresses_;
};

/// Called for each file that is loaded; keeps those that matter.
int keep(dl_phdr_info* info, std::size_t /*size*/, void* kept) {
  static_cast<std::vector<LoadedFile>*>(kept)->emplace_back(*info);
  return 0;
}

/// Calls work(entries, files) with all that is loaded.
template <typename Work>
void with_entries(Work&& work) {
  std::vector<LoadedFile> files;
  ::dl_iterate_phdr(keep, &files);
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&address_behind), &here) == 0) return;
  const auto own = std::find_if(files.begin(), files.end(), [&](const LoadedFile& file) {
    return file.base() == reinterpret_cast<Address>(here.dli_fbase);
  });
  if (own == files.end()) return;
  Entries entries(*own, files);
  work(entries, files);
}

/// Nobody meets these here any more.
void take_out(const Entries& ours, const Names& names, const std::vector<LoadedFile>& files) {
  if (names.empty()) return;
  for (const LoadedFile& file : files) ours.take_from(file, names);
  ours.hide(names);
}

/// Of a library of MPI's that only a plugin sees, as it does MPI's Fortran where that came with it. Null: there is
/// none.
void* function_in_libraries_of_mpi(const char* name) {
  void* found = nullptr;
  with_entries([&](const Entries&, const std::vector<LoadedFile>& files) {
    for (const LoadedFile& file : files) {
      if (!has_mpis_own(file)) continue;
      for (const Symbol& symbol : file.symbols())
        if (is_function_for_others(symbol) && std::string_view(file.names() + symbol.st_name) == name)
          found = reinterpret_cast<void*>(file.base() + symbol.st_value);  // NOLINT(performance-no-int-to-ptr)
    }
  });
  return found;
}

/// Whether a function of MPI's for C is not in the program's MPI, whose version may be older than what this was built
/// for. (Those for Fortran may be in libraries that are loaded later.)
bool is_missing(const char* name) {
  const std::string_view view = name;
  if (!view.starts_with("MPI_") && !view.starts_with("MPIX_")) return false;
  if (::dlsym(RTLD_NEXT, name) != nullptr) return false;
  const bool extension =
      view.starts_with("MPI_") && ::dlsym(RTLD_NEXT, ("MPIX_" + std::string(view.substr(4))).c_str());
  return !extension;  // those are offered by both names, see nonblocking.cc
}

__attribute__((constructor)) void give_entries() {
  if (!foreign_mpi().empty()) return;  // it has functions of the same names, with other arguments
  with_entries([](Entries& ours, const std::vector<LoadedFile>& files) {
    take_out(ours, ours.names(is_missing), files);
    for (const LoadedFile& file : files)
      if (has_mpis_own(file)) ours.give_to(file);
  });
}

}  // namespace

void step_aside() {
  with_entries([](const Entries& ours, const std::vector<LoadedFile>& files) { take_out(ours, ours.names(), files); });
}

bool comes_here_first(const char* name) {
  Dl_info first{}, own{};
  const void* const found = ::dlsym(RTLD_DEFAULT, name);
  return found != nullptr && ::dladdr(found, &first) != 0 &&
         ::dladdr(reinterpret_cast<const void*>(&address_behind), &own) != 0 && first.dli_fbase == own.dli_fbase;
}

void* address_behind(const char* name) {
  const auto& all = replaced();
  const auto own = all.find(std::string_view(name));
  if (own != all.end()) return own->second;
  void* const behind = ::dlsym(RTLD_NEXT, name);
  return behind != nullptr ? behind : function_in_libraries_of_mpi(name);
}

}  // namespace laconic::preload
