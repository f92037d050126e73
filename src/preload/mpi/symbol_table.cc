#include "preload/mpi/symbol_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace laconic::preload {
namespace {

constexpr unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

/// A file, of which nothing need be as it says.
class File {
 public:
  explicit File(const char* path) : descriptor_(::open(path, O_RDONLY | O_CLOEXEC)) {
    const off_t end = descriptor_ < 0 ? 0 : ::lseek(descriptor_, 0, SEEK_END);
    bytes_ = end < 0 ? 0 : static_cast<std::size_t>(end);
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Whether there were so many.
  bool read(std::size_t at, void* to, std::size_t bytes) const {
    if (at > bytes_ || bytes > bytes_ - at) return false;
    auto* next = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, next, bytes, static_cast<off_t>(at));
      if (got <= 0) return false;
      next += got;
      at += static_cast<std::size_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }
  /// Empty: they are not there.
  template <typename T>
  [[nodiscard]] std::vector<T> table(std::size_t at, std::size_t entries) const {
    if (at > bytes_ || entries > (bytes_ - at) / sizeof(T)) return {};
    std::vector<T> all(entries);
    if (!read(at, all.data(), entries * sizeof(T))) all.clear();
    return all;
  }

 private:
  int descriptor_;
  std::size_t bytes_ = 0;
};

}  // namespace

SymbolTable::SymbolTable(const char* path) {
  const File file(path);
  ElfW(Ehdr) header;
  if (!file.read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != own_class || header.e_shentsize != sizeof(ElfW(Shdr)))
    return;
  const auto sections = file.table<ElfW(Shdr)>(header.e_shoff, header.e_shnum);
  const auto table = std::ranges::find(sections, ElfW(Word){SHT_SYMTAB}, &ElfW(Shdr)::sh_type);
  if (table == sections.end() || table->sh_link >= sections.size()) return;
  const ElfW(Shdr)& names = sections[table->sh_link];
  auto text = file.table<char>(names.sh_offset, names.sh_size);
  text.push_back('\0');
  for (const auto& symbol : file.table<ElfW(Sym)>(table->sh_offset, table->sh_size / sizeof(ElfW(Sym)))) {
    const bool is_here = symbol.st_shndx != SHN_UNDEF && symbol.st_size != 0 && symbol.st_name < text.size();
    if (!is_here || (symbol.st_info & 0xf) != STT_FUNC) continue;
    functions_.push_back({symbol.st_value, symbol.st_size, names_.size()});
    names_.append(&text[symbol.st_name]).push_back('\0');
  }
  std::ranges::sort(functions_, {}, &Function::first);
}

std::string_view SymbolTable::function_at(Address address) const {
  const auto after = std::ranges::upper_bound(functions_, address, {}, &Function::first);
  if (after == functions_.begin()) return {};
  const Function& found = *(after - 1);
  return address - found.first < found.bytes ? std::string_view(names_.c_str() + found.name) : std::string_view{};
}

}  // namespace laconic::preload
