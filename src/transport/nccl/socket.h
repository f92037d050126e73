// TCP connections that never wait, and raise no signal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

struct sockaddr;

namespace laconic::nccl {

/// Where a rank listens.
struct Address {
  std::int32_t family = 0;  ///< AF_INET or AF_INET6; 0: nowhere
  std::uint32_t port = 0;
  std::array<std::uint8_t, 16> bytes{};  ///< as they go over the network; of IPv4 the first four

  bool operator==(const Address&) const = default;
};

/// Family 0 if it is neither.
Address address_of(const sockaddr& name);
std::string text_of(const Address& address);

/// One end. No program that this process starts inherits it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd);
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  /// The other end notices, even if another process has this end, too.
  void close() noexcept;

  /// As if it were closed, but for its number: from any thread.
  void hang_up() const noexcept;

  /// Bytes that went at once, none before the connection is there; nullopt: there is no connection any more.
  std::optional<std::size_t> send(std::span<const std::uint8_t> data);
  std::optional<std::size_t> receive(std::span<std::uint8_t> buffer);

  /// At any free port of an interface. Closed if that cannot be, and errno says why.
  static Socket listen(const Address& interface);
  [[nodiscard]] std::optional<Address> address() const;
  /// Of a listening one: who has connected; closed if nobody has, or with `failed` if it cannot be taken.
  Socket accept(bool& failed);
  /// To a listening one, in a while; closed if that cannot be.
  static Socket connect(const Address& to);
  /// Of this process.
  static int open_now();

 private:
  int fd_ = -1;
};

}  // namespace laconic::nccl
