#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace syncopate::spec {

/// A failure made on purpose, to see what the other workers do about it.
struct Fault {
  enum class Kind {
    kKill,   ///< SIGKILL
    kStop,   ///< SIGSTOP: the process is there but frozen
    kHang,   ///< the training thread sleeps for ever, the process lives
    kThrow,  ///< an exception that nobody catches, in another thread
  };
  int rank = 0;
  int64_t step = 0;
  std::string phase;
  Kind kind = Kind::kKill;
};

/// "RANK:STEP:PHASE:kill|stop|hang|throw"; nothing for an empty text. Throws ConfigError.
std::optional<Fault> parse_fault(const std::string& text);

}  // namespace syncopate::spec
