// Names for a file that shall be there whole or not at all: it is written under another name beside it, and renamed.
#pragma once

#include <filesystem>
#include <string>

namespace laconic {

/// Where a file that is not there yet will be: links that lead to nothing are followed. The caller has seen that links
/// do not go in circles (ELOOP).
std::filesystem::path through_links(std::filesystem::path path);

/// What the other name begins with, to which up to 31 characters may be added: a name as long as may be has no room
/// for more.
std::string beginning_beside(const std::filesystem::path& target);

}  // namespace laconic
