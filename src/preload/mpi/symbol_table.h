// Names of a file's functions, those too that it has for nobody else: the loader knows only what others may use.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace laconic::preload {

class SymbolTable {
 public:
  using Address = ElfW(Addr);

  /// Nothing is in it where the file cannot be read, or has been stripped of them.
  explicit SymbolTable(const char* path);

  /// The function that has this address in the file; empty: none. Valid as long as this.
  [[nodiscard]] std::string_view function_at(Address address) const;

 private:
  struct Function {
    Address first, bytes;
    std::size_t name;  ///< where it begins
  };
  std::vector<Function> functions_;  ///< in ascending order
  std::string names_;                ///< one after the other, each with a 0 at its end
};

}  // namespace laconic::preload
