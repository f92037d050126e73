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

std::string printable(std::string_view text) {
  std::string out;
  char before = '\0';
  for (const char character : text) {
    const auto c = static_cast<unsigned char>(character);
    const bool above = before == '\xc2' && c >= 0x80 && c < 0xa0;  // U+0080 to U+009F, of two bytes in UTF-8
    if (character == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7f || above) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += character;
    }
    before = character;
  }
  return out;
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
