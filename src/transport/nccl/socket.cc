#include "transport/nccl/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace laconic::nccl {
namespace {

constexpr int kind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int backlog = 128;  // more than there are ranks: strangers shall not keep them out

std::atomic<int> open_sockets{0};

struct Name {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Name name_of(const Address& a) {
  Name name;
  if (a.family == AF_INET6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(static_cast<std::uint16_t>(a.port));
    std::memcpy(&in.sin6_addr, a.bytes.data(), sizeof in.sin6_addr);
    std::memcpy(&name.storage, &in, name.length = sizeof in);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(static_cast<std::uint16_t>(a.port));
    std::memcpy(&in.sin_addr, a.bytes.data(), sizeof in.sin_addr);
    std::memcpy(&name.storage, &in, name.length = sizeof in);
  }
  return name;
}

/// Sends at once, and finds out about a host that is gone without a word in about half a minute.
void prepare(int fd) {
  const auto set = [fd](int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 35000);  // milliseconds
}

bool is_for_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Address address_of(const sockaddr& name) {
  Address a;
  if (name.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &name, sizeof in);
    a = {.family = AF_INET, .port = ntohs(in.sin_port)};
    std::memcpy(a.bytes.data(), &in.sin_addr, sizeof in.sin_addr);
  } else if (name.sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &name, sizeof in);
    a = {.family = AF_INET6, .port = ntohs(in.sin6_port)};
    std::memcpy(a.bytes.data(), &in.sin6_addr, sizeof in.sin6_addr);
  }
  return a;
}

std::string text_of(const Address& a) {
  char text[INET6_ADDRSTRLEN] = "?";
  ::inet_ntop(a.family, a.bytes.data(), text, sizeof text);
  return std::string(text) + " port " + std::to_string(a.port);
}

Socket::Socket(int fd) : fd_(fd) {
  if (fd >= 0) ++open_sockets;
}

int Socket::open_now() { return open_sockets; }

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

void Socket::close() noexcept {
  if (fd_ < 0) return;
  hang_up();
  ::close(std::exchange(fd_, -1));
  --open_sockets;
}

void Socket::hang_up() const noexcept { ::shutdown(fd_, SHUT_RDWR); }

std::optional<std::size_t> Socket::send(std::span<const std::uint8_t> data) {
  const ssize_t sent = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (is_for_later(errno)) return 0;
  return std::nullopt;
}

std::optional<std::size_t> Socket::receive(std::span<std::uint8_t> buffer) {
  if (buffer.empty()) return 0;
  const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got < 0 && is_for_later(errno)) return 0;
  return std::nullopt;
}

Socket Socket::listen(const Address& interface) {
  Socket s(::socket(interface.family, kind, 0));
  Name name = name_of(interface);
  if (s.is_open() && ::bind(s.fd_, name.get(), name.length) == 0 && ::listen(s.fd_, backlog) == 0) return s;
  const int error = errno;
  s.close();
  errno = error;
  return s;
}

std::optional<Address> Socket::address() const {
  Name name;
  name.length = sizeof name.storage;
  if (::getsockname(fd_, name.get(), &name.length) != 0) return std::nullopt;
  return address_of(*name.get());
}

Socket Socket::accept(bool& failed) {
  Socket s(::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (s.is_open()) {
    prepare(s.fd_);
  } else {
    failed = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM || errno == EBADF ||
             errno == EINVAL;  // all else is of the connection that was to be taken
  }
  return s;
}

Socket Socket::connect(const Address& to) {
  Socket s(::socket(to.family, kind, 0));
  if (!s.is_open()) return s;
  prepare(s.fd_);
  Name name = name_of(to);
  if (::connect(s.fd_, name.get(), name.length) != 0 && errno != EINPROGRESS && errno != EINTR) s.close();
  return s;
}

}  // namespace laconic::nccl
