#include "preload/mpi/loaded_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace laconic::preload {
namespace {

/// How many symbols a table of hashes knows, which the loader finds them by (DT_GNU_HASH): the chains of symbols follow
/// one another, and in each the last one has its lowest bit set.
std::size_t count_in(const std::uint32_t* table) {
  const std::uint32_t buckets = table[0], first = table[1], words = table[2];
  const std::uint32_t* const bucket = table + 4 + words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t last = buckets == 0 ? 0 : *std::max_element(bucket, bucket + buckets);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

}  // namespace

LoadedFile::LoadedFile(const dl_phdr_info& info) : info_(info) {
  const std::string_view path = info.dlpi_name != nullptr ? info.dlpi_name : "";
  name_ = path.substr(path.rfind('/') + 1);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what the loader gives
    const auto* const first = reinterpret_cast<const ElfW(Dyn)*>(base() + segment.p_vaddr);
    dynamic_ = {first, segment.p_memsz / sizeof(ElfW(Dyn))};
  }
}

LoadedFile::Address LoadedFile::number(ElfW(Sxword) tag) const {
  for (const ElfW(Dyn) & each : dynamic_) {
    if (each.d_tag == DT_NULL) break;
    if (each.d_tag == tag) return each.d_un.d_ptr;
  }
  return 0;
}

// Most loaders have turned them into addresses, some leave them relative to the file.
LoadedFile::Address LoadedFile::address(ElfW(Sxword) tag) const {
  const Address where = number(tag);
  return where != 0 && where < base() ? where + base() : where;
}

std::span<const LoadedFile::Symbol> LoadedFile::symbols() const {
  const auto* const first = at<const Symbol>(DT_SYMTAB);
  if (first == nullptr || names() == nullptr) return {};
  if (const auto* const gnu = at<const std::uint32_t>(DT_GNU_HASH)) return {first, count_in(gnu)};
  if (const auto* const sysv = at<const std::uint32_t>(DT_HASH)) return {first, sysv[1]};
  return {};
}

std::array<std::span<const LoadedFile::Relocation>, 2> LoadedFile::relocations() const {
  const auto table = [&](ElfW(Sxword) tag, ElfW(Sxword) bytes) -> std::span<const Relocation> {
    const auto* const first = at<const Relocation>(tag);
    return {first, first == nullptr ? 0 : number(bytes) / sizeof(Relocation)};
  };
  return {table(DT_RELA, DT_RELASZ),
          number(DT_PLTREL) == DT_RELA ? table(DT_JMPREL, DT_PLTRELSZ) : std::span<const Relocation>{}};
}

bool LoadedFile::is_read_only_now(Address address) const {
  const auto page = static_cast<Address>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info_.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info_.dlpi_phdr[i];
    const Address first = base() + segment.p_vaddr;
    if (segment.p_type == PT_GNU_RELRO && address >= first && address < (first + segment.p_memsz) / page * page)
      return true;
  }
  return false;
}

unsigned LoadedFile::access_to(Address address) const {
  for (int i = 0; i < info_.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info_.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && address - base() - segment.p_vaddr < segment.p_memsz) return segment.p_flags;
  }
  return 0;
}

bool is_mpi_library(std::string_view file) { return file.starts_with("libmpi"); }

}  // namespace laconic::preload
