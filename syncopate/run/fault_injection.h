#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace syncopate::run {

/// A failure made on purpose, to see what the other workers do about it.
struct FaultInjection {
  enum class Kind {
    kKill,  ///< SIGKILL
    kStop,  ///< SIGSTOP: the process is there but frozen
    kHang,  ///< the training thread sleeps for ever, the process lives
  };
  int rank = 0;
  int64_t step = 0;
  std::string phase;
  Kind kind = Kind::kKill;

  void fail_if_due(int64_t at_step, const char* at_phase) const;
};

/// "RANK:STEP:PHASE:kill|stop|hang"; nothing for an empty text. Throws ConfigError.
std::optional<FaultInjection> parse_fault(const std::string& text);

}  // namespace syncopate::run
