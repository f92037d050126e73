// A file that the loader has in memory, as the loader itself reads it.
#pragma once

#include <elf.h>
#include <link.h>

#include <array>
#include <span>
#include <string_view>

namespace laconic::preload {

class LoadedFile {
 public:
  using Address = ElfW(Addr);
  using Symbol = ElfW(Sym);
  using Relocation = ElfW(Rela);

  /// As dl_iterate_phdr() describes it.
  explicit LoadedFile(const dl_phdr_info& info);

  /// Without its folders; the program itself has none.
  [[nodiscard]] std::string_view name() const { return name_; }
  /// What addresses in the file are relative to.
  [[nodiscard]] Address base() const { return info_.dlpi_addr; }
  /// What its dynamic section says under `tag`, as a number, and as an address; 0: nothing.
  [[nodiscard]] Address number(ElfW(Sxword) tag) const;
  [[nodiscard]] Address address(ElfW(Sxword) tag) const;
  /// The names of symbols; null: it has none.
  [[nodiscard]] const char* names() const { return at<const char>(DT_STRTAB); }
  /// What it has for others and takes from others. Empty where nothing tells how many those are.
  [[nodiscard]] std::span<const Symbol> symbols() const;
  /// Where it has addresses of symbols, its own and others'.
  [[nodiscard]] std::array<std::span<const Relocation>, 2> relocations() const;
  /// The access that its segment has in which `address` lies: PF_R, PF_W, PF_X.
  [[nodiscard]] unsigned access_to(Address address) const;

  /// Whether an address is in what the loader lets nobody write to once it has put others' addresses there.
  [[nodiscard]] bool is_read_only_now(Address address) const;

  /// What stands at an address that the dynamic section has; null: nothing.
  template <typename T>
  [[nodiscard]] T* at(ElfW(Sxword) tag) const {
    return reinterpret_cast<T*>(address(tag));  // NOLINT(performance-no-int-to-ptr): that is what the loader gives
  }

 private:
  dl_phdr_info info_;
  std::string_view name_;
  std::span<const ElfW(Dyn)> dynamic_;
};

/// Libraries of MPI have its functions for other languages, too, which call those for C.
bool is_mpi_library(std::string_view file);

}  // namespace laconic::preload
