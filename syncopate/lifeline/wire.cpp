#include "syncopate/lifeline/wire.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "syncopate/base/error.h"

namespace syncopate::lifeline {
namespace {

/// No frame of ours comes near; a stranger's first bytes read as a length do.
constexpr uint32_t kLongest = 1 << 22;

}  // namespace

Packer::Packer(FrameKind kind) : bytes_(sizeof(uint32_t), '\0') { bytes_.push_back(static_cast<char>(kind)); }

Packer& Packer::number(int64_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  return *this;
}

Packer& Packer::text(std::string_view value) {
  number(static_cast<int64_t>(value.size()));
  bytes_.append(value);
  return *this;
}

std::string Packer::bytes() const {
  std::string whole = bytes_;
  const uint32_t length = static_cast<uint32_t>(whole.size() - sizeof(uint32_t));
  check(length <= kLongest, "a control message is too long");
  std::memcpy(whole.data(), &length, sizeof length);
  return whole;
}

Unpacker::Unpacker(std::string_view frame)
    : rest_(frame.substr(1)), kind_(static_cast<FrameKind>(static_cast<uint8_t>(frame[0]))) {}

int64_t Unpacker::number() {
  int64_t value = 0;
  if (rest_.size() < sizeof value) throw CommError("a control message ended early");
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
  return value;
}

std::string Unpacker::text() {
  const int64_t size = number();
  if (size < 0 || static_cast<uint64_t>(size) > rest_.size())
    throw CommError("a control message ended early");
  std::string value(rest_.substr(0, static_cast<size_t>(size)));
  rest_.remove_prefix(static_cast<size_t>(size));
  return value;
}

Channel::Channel(Socket socket) : socket_(std::move(socket)) {}

void Channel::send(const Packer& frame) {
  out_ += frame.bytes();
  flush();
}

void Channel::flush() {
  while (!out_.empty() && open()) {
    const ssize_t sent = ::send(fd(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) out_.clear();
      return;
    }
    out_.erase(0, static_cast<size_t>(sent));
  }
}

bool Channel::fill() {
  char part[16384];
  while (open()) {
    const ssize_t got = ::recv(fd(), part, sizeof part, MSG_DONTWAIT);
    if (got > 0) {
      in_.append(part, static_cast<size_t>(got));
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }
  return false;
}

std::optional<std::string> Channel::next() {
  uint32_t length = 0;
  if (in_.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, in_.data(), sizeof length);
  if (length == 0 || length > kLongest) throw CommError("not a control message");
  if (in_.size() < sizeof length + length) return std::nullopt;
  std::string frame = in_.substr(sizeof length, length);
  in_.erase(0, sizeof length + length);
  return frame;
}

}  // namespace syncopate::lifeline
