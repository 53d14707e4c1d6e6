#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  std::string key;
};

/// One worker's line to the LifelineServer: says what the worker does, learns of the run's first failure, and
/// carries the key-value store. Any thread may call it. It never connects a second time.
class Lifeline {
 public:
  explicit Lifeline(const LifelineOptions& options);  ///< connects; throws CommError that names HOST:PORT
  ~Lifeline();  ///< just hangs up: to the others it looks like a death, unless goodbye() was called
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

  /// Reports this rank's own failure; back when all others have been told, or after a second.
  void fail(std::string_view sentence, int exit_code);
  /// This rank waited `seconds` in `operation` in vain: the run's failure, naming whoever is to blame.
  Failure blame(std::string_view operation, double seconds);
  /// The orderly end: from here on this rank may go.
  void goodbye();

  /// Called on the lifeline's thread when the process is still there `patience` after it learned of a
  /// failure: the last resort against code that does not look up (a long computation, a write that hangs).
  using LastResort = std::function<void(const Failure&)>;
  void watch(LastResort last_resort, std::chrono::milliseconds patience = std::chrono::milliseconds(1000));

  /// Calls `listener` on the lifeline's thread when a failure becomes known (at once if it is); it must
  /// be quick and not call the lifeline.
  int listen(std::function<void()> listener);
  void unlisten(int id);

  /// While one lives, this rank is known to wait for others.
  class Waiting {
   public:
    explicit Waiting(Lifeline& line);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Lifeline& line_;
  };

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
