#include "preload/serving.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/written_file.h"

namespace laconic::preload {
namespace {

/// Closes it. False: errno says why.
bool write_and_close(int fd, std::string_view text) {
  bool good = fd >= 0;
  while (good && !text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    good = done >= 0;
    if (good) text.remove_prefix(static_cast<std::size_t>(done));
  }
  const int error = errno;
  if (fd >= 0 && ::close(fd) != 0 && good) return false;
  if (!good) errno = error;
  return good;
}

/// A new file beside the target, named in `part`. Below 0: errno says why there is none.
int open_beside(const std::string& target, mode_t mode, std::string& part) {
  int fd = -1;
  // A few names, in case an earlier run of the same process id was killed and left one behind. O_EXCL: what else lies
  // there, as a link to another file, is not ours.
  for (int attempt = 0; attempt < 16; ++attempt) {
    part = beginning_beside(target) + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".part";
    fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) break;
  }
  return fd;
}

/// To a file as a whole or not at all: the one that was there stays. What is none (a device, a pipe that somebody
/// reads) gets what it takes, as does a file in a folder where none may be made. False: errno says why.
bool write_whole(const std::string& file, std::string_view text) {
  std::error_code ignored;
  struct stat there{};
  const bool exists = ::stat(file.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode)) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) ::fcntl(fd, F_SETFL, 0);
    return write_and_close(fd, text);
  }
  if (!exists && (errno == ELOOP || errno == ENAMETOOLONG)) return false;
  const std::string target = (exists ? std::filesystem::canonical(file, ignored) : through_links(file)).string();
  std::string part;
  const int fd = open_beside(target, exists ? there.st_mode & 0777 : 0666, part);
  const bool none_allowed = fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS);
  if (none_allowed && exists) return write_and_close(::open(target.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC), text);
  if (write_and_close(fd, text) && ::rename(part.c_str(), target.c_str()) == 0) return true;
  const int error = errno;
  if (fd >= 0) ::unlink(part.c_str());
  errno = error;
  return false;
}

}  // namespace

void warn(const std::string& what) noexcept { std::fprintf(stderr, "laconic: %s\n", what.c_str()); }

const Rule* rule_for(const Situation& call, const Policy& policy, const Config& config, std::string_view library,
                     Tally& tally) {
  const Rule* const rule = policy.match(call);
  if (rule == nullptr) {
    tally.pass("smaller than what a rule asks for, or its rule says off");
    return nullptr;
  }
  if (call.op != Op::none && is_float(call.dtype) && options_under(*rule, config).bound.kind == BoundKind::lossless) {
    tally.pass("reductions of floating-point numbers without a bound are " + std::string(library) +
               "'s own, to the last bit");
    return nullptr;
  }
  return rule;
}

void write_report(const Tally& tally, Heading heading, const Config& config, const std::string& suffix) {
  heading.policy = (config.bound ? "bound " + config.bound->to_string() : std::string("no bound")) +
                   (config.policy.empty() ? "" : ", policy " + config.policy);
  heading.unknown = config.unknown;
  if (config.report == "summary") {
    std::fputs(tally.to_text(heading).c_str(), stderr);
    return;
  }
  const std::string file = config.report + suffix;
  if (!write_whole(file, tally.to_json(heading)))
    warn("the report cannot be written to '" + file + "': " + std::strerror(errno));
}

}  // namespace laconic::preload
