#include "run/elf.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <optional>

namespace laconic::app {
namespace {

/// The k-th of a table of T in the file; nothing where the file ends before it.
template <typename T>
std::optional<T> entry(const std::string& content, std::size_t table, std::size_t k) {
  const std::size_t size = content.size();
  if (table > size || k > (size - table) / sizeof(T) || size - table - k * sizeof(T) < sizeof(T)) return std::nullopt;
  T t;
  std::memcpy(&t, content.data() + table + k * sizeof(T), sizeof(T));
  return t;
}

bool is_marked_as_program(const std::string& content, const ElfW(Phdr) & dynamic) {
  for (std::size_t k = 0; (k + 1) * sizeof(ElfW(Dyn)) <= dynamic.p_filesz; ++k) {
    const auto d = entry<ElfW(Dyn)>(content, dynamic.p_offset, k);
    if (!d || d->d_tag == DT_NULL) return false;
    if (d->d_tag == DT_FLAGS_1) return (d->d_un.d_val & DF_1_PIE) != 0;
  }
  return false;
}

}  // namespace

bool is_elf(const std::string& content) { return content.compare(0, SELFMAG, ELFMAG) == 0; }

bool is_static_program(const std::string& content) {
  const auto header = entry<ElfW(Ehdr)>(content, 0, 0);
  constexpr unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (!header || !is_elf(content) || header->e_ident[EI_CLASS] != own_class) return false;
  bool program = header->e_type == ET_EXEC;
  for (std::size_t k = 0; k < header->e_phnum; ++k) {
    const auto segment = entry<ElfW(Phdr)>(content, header->e_phoff, k);
    if (!segment || segment->p_type == PT_INTERP) return false;
    if (segment->p_type == PT_DYNAMIC && header->e_type == ET_DYN) program = is_marked_as_program(content, *segment);
  }
  return program;
}

}  // namespace laconic::app
