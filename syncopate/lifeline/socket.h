#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate::lifeline {

using Deadline = std::chrono::steady_clock::time_point;

struct Address {
  std::string host;
  int port = 0;
  std::string text() const;  ///< "node1:29500", "[::1]:29500"
};

/// "HOST:PORT" or "[V6]:PORT"; nothing for anything else.
std::optional<Address> parse_address(std::string_view text);

/// Whether only this machine can reach it. Throws CommError for a name that cannot be found.
bool is_loopback(const Address& address);

/// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

/// Listens at that address alone; port 0 takes any free one. Throws CommError with what to do: the port is
/// taken, the address is not this machine's.
Socket listen_at(const Address& address);

/// Tries again until the deadline, since the other side may start later. Throws CommError that names
/// HOST:PORT.
Socket connect_to(const Address& address, Deadline deadline);

/// The next connection, or nothing.
std::optional<Socket> accept_from(const Socket& listener);

/// This end's numeric address and port.
Address local_address(const Socket& socket);

}  // namespace syncopate::lifeline
