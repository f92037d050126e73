#include "preload/mpi/imports.h"

#include <algorithm>

#include "preload/library.h"
#include "preload/mpi/loaded_file.h"

namespace laconic::preload {
namespace {

/// Every function that a file takes from others has a relocation that names its symbol; how many symbols there are
/// may stand nowhere.
int look_at_relocations(dl_phdr_info* info, std::size_t /*size*/, void* found) {
  const LoadedFile file(*info);
  const std::string_view name = file.name();
  if (is_mpi_library(name) || name.starts_with("liblaconic-mpi") || name.starts_with("linux-vdso")) return 0;
  const auto* const symbols = file.at<const LoadedFile::Symbol>(DT_SYMTAB);
  const char* const names = file.names();
  if (symbols == nullptr || names == nullptr) return 0;
  for (const auto& table : file.relocations()) {
    const bool any = std::any_of(table.begin(), table.end(), [&](const LoadedFile::Relocation& relocation) {
      const auto symbol = ELF64_R_SYM(relocation.r_info);
      return symbol != 0 && symbols[symbol].st_shndx == SHN_UNDEF &&
             is_background_collective(names + symbols[symbol].st_name);
    });
    if (!any) continue;
    *static_cast<bool*>(found) = true;
    return 1;
  }
  return 0;
}

}  // namespace

bool imports_background_collectives() {
  bool found = false;
  ::dl_iterate_phdr(look_at_relocations, &found);
  return found;
}

}  // namespace laconic::preload
