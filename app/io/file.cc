#include "io/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/written_file.h"
#include "exit_code.h"
#include "report/streams.h"

namespace laconic::app {
namespace {

// What a signal handler may touch: a fixed buffer with the temporary's name, empty when there is none.
std::array<char, PATH_MAX> pending_temporary{};

constexpr std::array deadly_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};

void remove_pending_and_die(int signal_number) {
  if (pending_temporary[0] != '\0') ::unlink(pending_temporary.data());
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

void protect(const std::string& temporary) {
  if (temporary.size() >= pending_temporary.size()) return;
  std::memcpy(pending_temporary.data(), temporary.c_str(), temporary.size() + 1);
  for (int s : deadly_signals) {
    struct sigaction now{};
    const bool ignored = ::sigaction(s, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;  // as nohup does
    if (!ignored) ::signal(s, remove_pending_and_die);
  }
}

void unprotect() { pending_temporary[0] = '\0'; }

/// Holds the deadly signals back while a temporary exists that the handler does not know yet.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t deadly;
    ::sigemptyset(&deadly);
    for (int s : deadly_signals) ::sigaddset(&deadly, s);
    ::pthread_sigmask(SIG_BLOCK, &deadly, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

// What a write would raise beside failing.
constexpr std::array write_signals{SIGPIPE, SIGXFSZ};

bool is_stdout(const struct stat& s) {
  struct stat out{};
  return ::fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == s.st_dev && out.st_ino == s.st_ino;
}

/// Whether a name stands for what the shell has opened already: that is no file that --force would have to permit.
bool names_stdout(const std::string& path) {
  return path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

std::string describe(int error) { return std::system_category().message(error); }

}  // namespace

WriteFailuresOnly::WriteFailuresOnly() {
  for (std::size_t i = 0; i < write_signals.size(); ++i) {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(write_signals[i], &ignore, &before_[i]);
  }
}

WriteFailuresOnly::~WriteFailuresOnly() {
  for (std::size_t i = 0; i < write_signals.size(); ++i) ::sigaction(write_signals[i], &before_[i], nullptr);
}

// O_NONBLOCK: a pipe that nobody writes to must not hold it up.
InputFile::InputFile(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) throw Failure(Exit::no_input, fmt::format("cannot open '{}': {}", path, describe(errno)));
  struct stat s{};
  if (::fstat(fd_, &s) != 0 || !S_ISREG(s.st_mode)) {
    ::close(fd_);
    throw Failure(Exit::no_input, fmt::format("'{}' is not a regular file", path));
  }
  size_ = static_cast<std::uint64_t>(s.st_size);
  char more = 0;
  if (::pread(fd_, &more, 1, s.st_size) > 0) {  // as the files of /proc
    ::close(fd_);
    throw Failure(Exit::no_input, fmt::format("'{}' holds more than its size says; copy it to a file first", path));
  }
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read_at(std::uint64_t offset, std::span<std::uint8_t> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Failure(Exit::no_input, fmt::format("cannot read '{}': {}", path_, describe(errno)));
    if (got == 0) throw Failure(Exit::bad_data, fmt::format("'{}' ends at byte {}, more was expected", path_, offset));
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

OutputFile::OutputFile(const std::string& path, bool overwrite) : path_(path), target_(path), overwrite_(overwrite) {
  struct stat s{};
  if (::stat(path.c_str(), &s) == 0) {
    if (S_ISDIR(s.st_mode)) throw Failure(Exit::no_output, fmt::format("cannot write '{}': it is a folder", path));
    if (is_stdout(s)) keep_reports_off_stdout();
    if (!S_ISREG(s.st_mode) || names_stdout(path)) {
      fd_ =
          names_stdout(path) ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd_ < 0) fail("open");
      return;
    }
    if (!overwrite) refuse_to_replace();
    replaced_ = s;
    std::error_code ignored;
    const auto real = std::filesystem::canonical(path, ignored);
    if (!ignored) target_ = real.string();
  } else if (errno == ELOOP || errno == ENAMETOOLONG) {
    fail("open");
  } else {
    target_ = through_links(path).string();
  }
  open_temporary();
}

void OutputFile::open_temporary() {
  const SignalsHeld held;
  // A few names, in case an earlier run of the same process id was killed and left one behind.
  for (int attempt = 0; attempt < 16 && fd_ < 0; ++attempt) {
    temporary_ = fmt::format("{}.{}-{}.part", beginning_beside(target_), ::getpid(), attempt);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaced_ ? 0600 : 0666);
    if (fd_ < 0 && errno != EEXIST) {
      temporary_.clear();
      fail("create");
    }
  }
  if (fd_ < 0) fail("create");
  protect(temporary_);
  if (replaced_) allow_only(*replaced_);
}

/// Nobody may do more with the new file than with the one before.
void OutputFile::allow_only(const struct ::stat& before) const {
  mode_t mode = before.st_mode & 0777;
  const bool same_group =
      ::fchown(fd_, before.st_uid, before.st_gid) == 0 || ::fchown(fd_, static_cast<uid_t>(-1), before.st_gid) == 0;
  if (!same_group) mode &= 0707 | (mode & 07) << 3;  // of another group is only known what everybody may do
  static_cast<void>(::fchmod(fd_, mode));            // if it fails, it stays as it was made: for its owner only
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    unprotect();
  }
}

void OutputFile::fail(const char* doing) const {
  const int error = errno;
  const char* advice = error == ENOSPC || error == EDQUOT ? " (free some space, or write to another disk)" : "";
  throw Failure(Exit::no_output, fmt::format("cannot {} '{}': {}{}", doing, path_, describe(error), advice));
}

void OutputFile::refuse_to_replace() const {
  throw Failure(Exit::no_output, fmt::format("'{}' exists; add --force to replace it, or name another with -o", path_));
}

void OutputFile::write(std::span<const std::uint8_t> data) {
  while (!data.empty()) {
    const ssize_t done = ::write(fd_, data.data(), data.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EAGAIN) {  // a pipe that whoever made it does not want to wait for
      pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
      static_cast<void>(::poll(&room, 1, -1));  // what is wrong, write() says
      continue;
    }
    if (done < 0) fail("write");
    written_ += static_cast<std::uint64_t>(done);
    data = data.subspan(static_cast<std::size_t>(done));
  }
}

void OutputFile::commit() {
  // Devices and pipes need not support fsync: EINVAL is no failure there.
  if (::fsync(fd_) != 0 && !(temporary_.empty() && (errno == EINVAL || errno == EROFS))) fail("write");
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail("write");
  failures_only_.reset();
  if (temporary_.empty()) return;
  rename_temporary();
  temporary_.clear();
  unprotect();
  // The rename itself must survive a crash too; a folder that cannot be opened only loses that.
  const auto folder = std::filesystem::path(target_).parent_path();
  const int dir = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    ::fsync(dir);
    ::close(dir);
  }
}

/// Not over a file that has come there since the beginning, unless it was to be replaced.
void OutputFile::rename_temporary() const {
  const char* const from = temporary_.c_str();
  const char* const to = target_.c_str();
  if (!overwrite_) {
    if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return;
    if (errno == EEXIST) refuse_to_replace();
    const bool unknown_here = errno == EINVAL || errno == ENOSYS;  // to the file system, or the kernel
    if (!unknown_here) fail("rename to");
    struct stat there{};
    if (::lstat(to, &there) == 0) refuse_to_replace();
  }
  if (std::rename(from, to) != 0) fail("rename to");
}

void require_output(const std::string& input, const std::string& output) {
  if (output.empty() && (input.starts_with("/dev/") || input.starts_with("/proc/")))
    throw Failure(Exit::usage, fmt::format("'{}' gives the output no name: say it with -o", input));
  std::error_code ignored;  // as of an output that is not there yet
  if (std::filesystem::is_regular_file(output, ignored) && std::filesystem::equivalent(input, output, ignored))
    throw Failure(Exit::usage, fmt::format("--output '{}' is the input itself; name another file", output));
}

void write_file(const std::string& path, std::span<const std::uint8_t> data) {
  OutputFile out(path, true);
  out.write(data);
  out.commit();
}

void write_file(const std::string& path, const std::string& text) {
  write_file(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Failure(Exit::no_output, fmt::format("cannot create folder '{}': {}", path, error.message()));
}

}  // namespace laconic::app
