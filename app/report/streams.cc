#include "report/streams.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace laconic::app {
namespace {
bool data_on_stdout = false;
}

void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest number that is free is taken: this one.
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

void complain(const std::string& text) noexcept {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

void report(const std::string& text) {
  if (data_on_stdout) {
    complain(text);
  } else {
    fmt::print("{}", text);
  }
}

void keep_reports_off_stdout() { data_on_stdout = true; }

}  // namespace laconic::app
