#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/lifeline/lifeline.h"
#include "syncopate/lifeline/socket.h"

// How the two ends of a link that is measured talk to each other.
namespace syncopate::run {

/// What they tell each other beside the flow of bytes that is measured.
struct Message {
  enum Kind : int64_t { kPing, kPong, kEnough, kReady, kGo, kDone };
  int64_t kind = kPing;
  double rate = 0;    ///< kDone: bytes a second that came in. kGo: seconds of a round trip
  double spread = 0;  ///< kDone: how much the rate varied
};

/// Waits on sockets and gives up when the run has failed or nothing has come for too long.
class Patience {
 public:
  static constexpr std::chrono::milliseconds kLook{100};  ///< how often it looks whether the run has failed

  Patience(lifeline::Lifeline& line, std::chrono::milliseconds timeout, std::string what)
      : line_(line), timeout_(timeout), what_(std::move(what)) {}
  /// poll(2) for at most `most`. Throws CommError.
  void wait(std::vector<pollfd>& fds, std::chrono::milliseconds most = kLook);

 private:
  using Clock = std::chrono::steady_clock;
  lifeline::Lifeline& line_;
  std::chrono::milliseconds timeout_;
  std::string what_;
  Clock::time_point last_ = Clock::now();
};

/// A connection for messages. All machines of a run have the same order of bytes. Throws CommError.
class Control {
 public:
  Control(lifeline::Socket socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}
  int fd() const { return socket_.fd(); }
  void send(const Message& message, Patience& patience);
  std::optional<Message> look();  ///< what has come, if a whole message has
  Message receive(Patience& patience);

 private:
  [[noreturn]] void lost(const char* why) const;

  lifeline::Socket socket_;
  std::string name_;
  Message in_{};
  size_t got_ = 0;
};

}  // namespace syncopate::run
