#include "syncopate/lifeline/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::lifeline {
namespace {

using Resolved = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Resolved resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) {
    throw CommError("cannot find the machine \"{}\" ({}); check the name in the rendezvous", address.host,
                    ::gai_strerror(code));
  }
  return {found, &::freeaddrinfo};
}

Socket make_socket(const addrinfo& where) {
  return Socket(
      ::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol));
}

/// A client that tries a free local port again and again may be given that very port and so reach itself.
bool reached_itself(const Socket& socket) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&here), &here_size);
  if (::getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return true;
  return here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

/// 0, or the errno that tells why not.
int try_connect(Socket& socket, const addrinfo& where, Deadline deadline) {
  if (::connect(socket.fd(), where.ai_addr, where.ai_addrlen) == 0)
    return reached_itself(socket) ? ECONNREFUSED : 0;
  if (errno != EINPROGRESS) return errno;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd wait{socket.fd(), POLLOUT, 0};
  if (::poll(&wait, 1, static_cast<int>(std::max<int64_t>(left.count(), 1))) <= 0) return ETIMEDOUT;
  int code = 0;
  socklen_t size = sizeof code;
  ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &code, &size);
  return code == 0 && reached_itself(socket) ? ECONNREFUSED : code;
}

void send_at_once(const Socket& socket) {
  const int yes = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

std::string Address::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

std::optional<Address> parse_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  const auto port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return Address{std::string(host), static_cast<int>(*port)};
}

bool is_loopback(const Address& address) {
  const Resolved found = resolve(address, 0);
  for (const addrinfo* where = found.get(); where != nullptr; where = where->ai_next) {
    if (where->ai_family == AF_INET) {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(where->ai_addr);
      if (ntohl(v4->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET) return false;
    } else if (where->ai_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(where->ai_addr);
      if (!IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) return false;
    }
  }
  return true;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Socket listen_at(const Address& address) {
  const Resolved found = resolve(address, AI_PASSIVE);
  Socket socket = make_socket(*found);
  const int yes = 1;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket.open() && ::bind(socket.fd(), found->ai_addr, found->ai_addrlen) == 0 &&
      ::listen(socket.fd(), 1024) == 0) {
    return socket;
  }
  switch (errno) {
    case EADDRINUSE:
      throw CommError("port {} of {} is taken by another program; choose another port", address.port,
                      address.host);
    case EADDRNOTAVAIL:
      throw CommError(
          "cannot listen at {}: that is not an address of this machine; the rendezvous must be an "
          "address of the machine of rank 0",
          address.text());
    case EACCES:
      throw CommError("not allowed to listen at port {}; choose one from 1024 to 65535", address.port);
    default:
      throw CommError("cannot listen at {}: {}", address.text(), std::strerror(errno));
  }
}

Socket connect_to(const Address& address, Deadline deadline) {
  const auto start = std::chrono::steady_clock::now();
  std::chrono::milliseconds pause(10);
  while (true) {
    const Resolved found = resolve(address, 0);
    int code = 0;
    for (const addrinfo* where = found.get(); where != nullptr; where = where->ai_next) {
      Socket socket = make_socket(*where);
      code = socket.open() ? try_connect(socket, *where, deadline) : errno;
      if (code == 0) {
        send_at_once(socket);
        return socket;
      }
    }
    const auto now = std::chrono::steady_clock::now();
    if (now + pause >= deadline) {
      throw CommError("cannot reach {} ({}, tried for {:.1f} s); is rank 0 running there?", address.text(),
                      std::strerror(code), std::chrono::duration<double>(now - start).count());
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(300));
  }
}

std::optional<Socket> accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.open()) return std::nullopt;
  send_at_once(socket);
  return socket;
}

Address local_address(const Socket& socket) {
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&here), &size);
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "0";
  ::getnameinfo(reinterpret_cast<sockaddr*>(&here), size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, static_cast<int>(parse_integer(port).value_or(0))};
}

}  // namespace syncopate::lifeline
