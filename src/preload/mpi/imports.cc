#include "preload/mpi/imports.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "preload/library.h"

namespace laconic::preload {
namespace {

using Address = ElfW(Addr);

/// Libraries of MPI have its functions for other languages, which call those for C.
bool is_passed_over(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libmpi") || file.starts_with("liblaconic-mpi") || file.starts_with("linux-vdso");
}

/// The dynamic section of a loaded file; nothing if it has none.
std::span<const ElfW(Dyn)> dynamic_of(const dl_phdr_info& file) {
  for (int i = 0; i < file.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = file.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what the loader gives
    const auto* const first = reinterpret_cast<const ElfW(Dyn)*>(file.dlpi_addr + segment.p_vaddr);
    return {first, segment.p_memsz / sizeof(ElfW(Dyn))};
  }
  return {};
}

/// What a dynamic section says under `tag`; 0: nothing.
Address entry(std::span<const ElfW(Dyn)> dynamic, ElfW(Sxword) tag) {
  for (const ElfW(Dyn) & each : dynamic) {
    if (each.d_tag == DT_NULL) break;
    if (each.d_tag == tag) return each.d_un.d_ptr;
  }
  return 0;
}

/// Every function that a file takes from others has a relocation that names its symbol; how many symbols there are
/// stands nowhere.
int look_at_relocations(dl_phdr_info* file, std::size_t /*size*/, void* found) {
  if (file->dlpi_name != nullptr && is_passed_over(file->dlpi_name)) return 0;
  const auto dynamic = dynamic_of(*file);
  // Most loaders have turned them into addresses, some leave them relative to the file.
  const auto at = [&](ElfW(Sxword) tag) {
    const Address where = entry(dynamic, tag);
    return where != 0 && where < file->dlpi_addr ? where + file->dlpi_addr : where;
  };
  // NOLINTBEGIN(performance-no-int-to-ptr)
  const auto* const symbols = reinterpret_cast<const ElfW(Sym)*>(at(DT_SYMTAB));
  const auto* const names = reinterpret_cast<const char*>(at(DT_STRTAB));
  if (symbols == nullptr || names == nullptr) return 0;
  const auto any = [&](ElfW(Sxword) table, ElfW(Sxword) bytes) {
    const std::span relocations(reinterpret_cast<const ElfW(Rela)*>(at(table)),
                                at(table) == 0 ? 0 : entry(dynamic, bytes) / sizeof(ElfW(Rela)));
    return std::any_of(relocations.begin(), relocations.end(), [&](const ElfW(Rela) & relocation) {
      const auto symbol = ELF64_R_SYM(relocation.r_info);
      return symbol != 0 && symbols[symbol].st_shndx == SHN_UNDEF &&
             is_background_collective(names + symbols[symbol].st_name);
    });
  };
  // NOLINTEND(performance-no-int-to-ptr)
  if (!any(DT_RELA, DT_RELASZ) && (entry(dynamic, DT_PLTREL) != DT_RELA || !any(DT_JMPREL, DT_PLTRELSZ))) return 0;
  *static_cast<bool*>(found) = true;
  return 1;
}

}  // namespace

bool imports_background_collectives() {
  bool found = false;
  ::dl_iterate_phdr(look_at_relocations, &found);
  return found;
}

}  // namespace laconic::preload
