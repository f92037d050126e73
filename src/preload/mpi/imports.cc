#include "preload/mpi/imports.h"

#include <algorithm>

#include "preload/library.h"
#include "preload/mpi/loaded_file.h"

namespace laconic::preload {
namespace {

struct Imports {
  bool (*is_such)(std::string_view function);
  std::string_view except;
  bool found = false;
};

/// Every function that a file takes from others has a relocation that names its symbol; how many symbols there are
/// may stand nowhere.
int look_at_relocations(dl_phdr_info* info, std::size_t /*size*/, void* given) {
  Imports& wanted = *static_cast<Imports*>(given);
  const LoadedFile file(*info);
  const std::string_view name = file.name();
  if (is_mpi_library(name) || name.starts_with("mca_") || name.starts_with("liblaconic-mpi") ||
      name.starts_with("linux-vdso"))
    return 0;
  if (std::string_view(info->dlpi_name).find(wanted.except) != std::string_view::npos) return 0;
  const auto* const symbols = file.at<const LoadedFile::Symbol>(DT_SYMTAB);
  const char* const names = file.names();
  if (symbols == nullptr || names == nullptr) return 0;
  for (const auto& table : file.relocations()) {
    const bool any = std::any_of(table.begin(), table.end(), [&](const LoadedFile::Relocation& relocation) {
      const auto symbol = ELF64_R_SYM(relocation.r_info);
      return symbol != 0 && symbols[symbol].st_shndx == SHN_UNDEF && wanted.is_such(names + symbols[symbol].st_name);
    });
    if (!any) continue;
    wanted.found = true;
    return 1;
  }
  return 0;
}

}  // namespace

bool imports(bool (*is_such)(std::string_view function), std::string_view except) {
  Imports wanted{is_such, except};
  ::dl_iterate_phdr(look_at_relocations, &wanted);
  return wanted.found;
}

}  // namespace laconic::preload
