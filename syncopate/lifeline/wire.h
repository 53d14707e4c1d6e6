#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "syncopate/lifeline/socket.h"

namespace syncopate::lifeline {

/// What travels between a Lifeline and its server. A frame is a 32-bit length, a kind and its fields.
enum class FrameKind : uint8_t {
  kHello = 1,  ///< magic, a number of the worker's, rank, size
  kChallenge,  ///< a number of the server's
  kProof,      ///< of the key, for both numbers; claims
  kWelcome,    ///< the server's proof, host rank
  kRefused,    ///< whether it is the key, sentence
  kBeat,       ///< both ways; a worker's says whether it waits in an exchange
  kStatus,     ///< rank, step, phase; relayed to all when it is the host's
  kFail,       ///< id, exit code, sentence
  kBlame,      ///< id, operation, seconds
  kFailure,    ///< the run's first failure
  kGoodbye,    ///< clean exit of the worker
  kClosing,    ///< clean shutdown of the server
  kSet,        ///< id, key, value
  kGet,        ///< id, key; answered when the key exists
  kAdd,        ///< id, key, number
  kCheck,      ///< id, count, keys
  kErase,      ///< id, key
  kCount,      ///< id; how many keys there are
  kWish,       ///< wishes: all ranks should halt after the same step
  kWhere,      ///< to all: how many steps have you begun? Begin no other
  kHere,       ///< steps begun
  kMeet,       ///< to all: step, wishes
  kMet,        ///< this rank has come there
  kReply,      ///< id, number, value
};

/// Writes the fields of a frame; `bytes()` is ready to be sent. Numbers are in the machine's own order: every
/// machine of a run has the same.
class Packer {
 public:
  explicit Packer(FrameKind kind);
  Packer& number(int64_t value);
  Packer& text(std::string_view value);
  std::string bytes() const;

 private:
  std::string bytes_;
};

/// Reads them back; throws CommError when the frame is shorter than its fields.
class Unpacker {
 public:
  explicit Unpacker(std::string_view frame);
  FrameKind kind() const { return kind_; }
  int64_t number();
  std::string text();

 private:
  std::string_view rest_;
  FrameKind kind_;
};

/// A connection that carries whole frames and never blocks: what the other side does not take is kept until
/// it does.
class Channel {
 public:
  explicit Channel(Socket socket);
  int fd() const { return socket_.fd(); }
  bool open() const { return socket_.open(); }
  void close() { socket_.close(); }
  const Socket& socket() const { return socket_; }
  void send(const Packer& frame);  ///< a broken connection shows at the next fill()
  bool unsent() const { return !out_.empty(); }
  void flush();
  /// Takes in what has arrived; false when the connection has ended.
  bool fill();
  /// The next whole frame. Throws CommError on one that cannot be ours.
  std::optional<std::string> next();

 private:
  Socket socket_;
  std::string in_, out_;
};

}  // namespace syncopate::lifeline
