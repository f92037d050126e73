#include "core/written_file.h"

#include <climits>
#include <system_error>

namespace laconic {

std::filesystem::path through_links(std::filesystem::path path) {
  std::error_code ignored;
  while (std::filesystem::is_symlink(std::filesystem::symlink_status(path, ignored)))
    path = path.parent_path() / std::filesystem::read_symlink(path);
  return path;
}

std::string beginning_beside(const std::filesystem::path& target) {
  constexpr std::size_t most = NAME_MAX - 32;
  return (target.parent_path() / target.filename().string().substr(0, most)).string();
}

}  // namespace laconic
