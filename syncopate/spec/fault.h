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
    kLeave,  ///< it says goodbye and ends well, as if it had nothing left to do
  };
  int rank = 0;
  int64_t step = 0;
  std::string phase;
  Kind kind = Kind::kKill;
};

inline constexpr const char* kFaultForm = "RANK:STEP:PHASE:kill|stop|hang|throw|leave";

/// Of kFaultForm; nothing for an empty text. Throws ConfigError.
std::optional<Fault> parse_fault(const std::string& text);

}  // namespace syncopate::spec
