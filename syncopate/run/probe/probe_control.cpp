#include "syncopate/run/probe/probe_control.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "syncopate/base/error.h"

namespace syncopate::run {

void Patience::wait(std::vector<pollfd>& fds, std::chrono::milliseconds most) {
  const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, most.count())));
  if (ready > 0) {
    last_ = Clock::now();
    return;
  }
  line_.check();
  if (Clock::now() - last_ > timeout_) {
    throw CommError("{}: nothing came for {:.0f} s; is the link up, and do firewalls let TCP through?", what_,
                    std::chrono::duration<double>(timeout_).count());
  }
}

void Control::send(const Message& message, Patience& patience) {
  const char* at = reinterpret_cast<const char*>(&message);
  size_t left = sizeof message;
  while (left > 0) {
    const ssize_t sent = ::send(fd(), at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      at += sent;
      left -= static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      std::vector<pollfd> fds{{fd(), POLLOUT, 0}};
      patience.wait(fds);
    } else if (errno != EINTR) {
      lost(std::strerror(errno));
    }
  }
}

std::optional<Message> Control::look() {
  while (got_ < sizeof in_) {
    const ssize_t got = ::recv(fd(), reinterpret_cast<char*>(&in_) + got_, sizeof in_ - got_, MSG_DONTWAIT);
    if (got == 0) lost("it closed the connection");
    if (got < 0 && errno == EAGAIN) return std::nullopt;
    if (got < 0 && errno != EINTR) lost(std::strerror(errno));
    if (got > 0) got_ += static_cast<size_t>(got);
  }
  got_ = 0;
  return in_;
}

Message Control::receive(Patience& patience) {
  while (true) {
    if (const auto message = look()) return *message;
    std::vector<pollfd> fds{{fd(), POLLIN, 0}};
    patience.wait(fds);
  }
}

void Control::lost(const char* why) const { throw CommError("the probe lost {}: {}", name_, why); }

}  // namespace syncopate::run
