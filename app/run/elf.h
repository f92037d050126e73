// What an executable file says of how it is linked.
#pragma once

#include <string>

namespace laconic::app {

/// Whether these are the bytes of an ELF file.
bool is_elf(const std::string& content);

/// Whether they are a program that runs without the dynamic loader, so that nothing can be loaded before its libraries.
/// Not for a shared library, and not for what is damaged or made for another word size. Source: the System V ABI's
/// chapters on object files; DF_1_PIE, which tells static position-independent programs from libraries, is the GNU
/// linker's.
bool is_static_program(const std::string& content);

}  // namespace laconic::app
