#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/lifeline/claims.h"
#include "syncopate/lifeline/failure.h"
#include "syncopate/lifeline/socket.h"
#include "syncopate/lifeline/wire.h"

namespace syncopate::lifeline {

struct LifelineOptions {
  Address server;
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{20000};   ///< a server silent for longer has hung
  std::chrono::milliseconds patience{20000};  ///< how long to try to connect: the server may start later
  std::string key;                            ///< both sides show that they know it; it is never sent
  Claims claims{};                            ///< what must be alike on all ranks
  /// Called with a sentence when the rank that serves has not been heard of for kSilence. On the lifeline's
  /// thread. May be empty.
  std::function<void(const std::string&)> on_silence{};
};

/// The server did not let this rank in.
class RefusedError : public Error {
 public:
  RefusedError(const std::string& sentence, bool for_its_key)
      : Error(ExitCode::kConfig, sentence), for_its_key_(for_its_key) {}
  bool for_its_key() const { return for_its_key_; }  ///< another run's, or another token

 private:
  bool for_its_key_;
};

/// One worker's connection to the LifelineServer: reports what the worker does, learns of the run's first
/// failure, and provides the key-value store. Thread-safe. Never reconnects.
class Lifeline {
 public:
  /// Connects; throws CommError that names HOST:PORT, or RefusedError.
  explicit Lifeline(const LifelineOptions& options);
  ~Lifeline();  ///< disconnects; to the others that is a death unless goodbye() was called
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  int rank() const;
  int size() const;
  Address local() const;  ///< our end: the address that reaches the server

  /// What this rank does now; a few microseconds, so call it at every change.
  void status(int64_t step, std::string_view phase);
  /// The run's first failure, if there is one.
  std::optional<Failure> failure() const;
  /// The same, but gives it up to `patience` to arrive.
  std::optional<Failure> await_failure(std::chrono::milliseconds patience) const;
  /// Throws CommError with the failure's sentence when there is one.
  void check() const;

  /// Reports this rank's own failure; returns when all others have been told, or after a second.
  void fail(std::string_view sentence, int exit_code);
  /// Called after this rank timed out: it waited `seconds` in `operation`. Returns the run's failure, which
  /// names the rank to blame.
  Failure blame(std::string_view operation, double seconds);
  /// Clean shutdown: this rank may exit afterwards.
  void goodbye();

  /// Called on the lifeline's thread when the process is still there `patience` after it learned of a
  /// failure: the last resort against code that does not check (a long computation, a write that hangs).
  using LastResort = std::function<void(const Failure&)>;
  void watch(LastResort last_resort, std::chrono::milliseconds patience = std::chrono::milliseconds(1000));

  /// Calls `listener` on the lifeline's thread when a failure becomes known (at once if it is); it must
  /// be quick and not call the lifeline.
  int listen(std::function<void()> listener);
  void unlisten(int id);

  /// While one exists, the server knows that this rank is waiting for others.
  class Waiting {
   public:
    explicit Waiting(Lifeline& line);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Lifeline& line_;
  };

  // Halting together, for ranks that do not talk in every step; see Meetings.
  /// Wishes, as bits, that all ranks halt after the same step. Returns at once.
  void wish(int64_t wishes);
  /// This rank is about to begin step `step` (from 0). Returns 0, or what was wished for: then all ranks are
  /// before this very step. Waits while they find out which it is. Throws CommError when the run has failed.
  int64_t begin(int64_t step);

  // The store. Each throws CommError after the timeout, or at once when the run has failed.
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key, std::chrono::milliseconds timeout);  ///< waits for the key to exist
  int64_t add(const std::string& key, int64_t number);
  bool exist(const std::vector<std::string>& keys);
  bool erase(const std::string& key);
  int64_t count();
  void await_all(std::chrono::milliseconds timeout);  ///< until every rank has a lifeline

 private:
  class Loop;
  using Build = std::function<Packer(int64_t id)>;
  int64_t request(std::string_view what, const Build& build, std::chrono::milliseconds timeout,
                  std::string* value = nullptr);
  std::unique_ptr<Loop> loop_;
};

}  // namespace syncopate::lifeline
