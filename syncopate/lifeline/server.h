#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "syncopate/lifeline/claims.h"
#include "syncopate/lifeline/failure.h"

namespace syncopate::lifeline {

struct LifelineServerOptions {
  std::string host = "127.0.0.1";  ///< listens at this address alone
  int port = 0;                    ///< 0: any free one
  int size = 1;
  std::chrono::milliseconds timeout{20000};  ///< a rank silent for longer has hung
  int host_rank = -1;                        ///< whose process this is in; -1: the launcher's
  std::string key;                           ///< workers must know the same
  Claims claims;  ///< what a worker must have alike; empty: as the first worker has it
  /// Called with a sentence when a worker is turned away, which leaves its place free. On the server's
  /// thread.
  std::function<void(const std::string&)> on_refusal;
  /// Called with a sentence when a rank has not been heard of for kSilence, though the run goes on. On the
  /// server's thread. May be empty.
  std::function<void(const std::string&)> on_silence;
};

/// The rendezvous of a run's workers: a small key-value store and one lifeline per rank, so that a death is
/// known at once, together with what the rank was doing. Runs in its own thread.
class LifelineServer {
 public:
  explicit LifelineServer(
      const LifelineServerOptions& options);  ///< throws CommError (port taken, not our address)
  ~LifelineServer();  ///< stops; to the workers that is a death unless close() was called
  LifelineServer(const LifelineServer&) = delete;
  LifelineServer& operator=(const LifelineServer&) = delete;

  int port() const;
  std::optional<Failure> failure() const;  ///< the first one
  void declare(const Failure& failure);    ///< tells all ranks, unless there was one before
  Status status_of(int rank) const;
  bool joined(int rank) const;
  bool left(int rank) const;  ///< said goodbye
  void close();               ///< clean shutdown: tells the workers that are still connected

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace syncopate::lifeline
