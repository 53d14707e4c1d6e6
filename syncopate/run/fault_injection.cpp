#include "syncopate/run/fault_injection.h"

#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::run {

void FaultInjection::fail_if_due(int64_t at_step, const char* at_phase) const {
  if (at_step < step || phase != at_phase) return;
  // Nobody is killed in the microsecond in which a phase begins: let the word of it get out.
  ::usleep(100000);
  if (kind == Kind::kKill) ::raise(SIGKILL);
  if (kind == Kind::kStop) ::raise(SIGSTOP);
  while (kind == Kind::kHang) ::pause();
}

std::optional<FaultInjection> parse_fault(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto parts = split(text, ':');
  const auto rank = parts.size() == 4 ? parse_integer(parts[0]) : std::nullopt;
  const auto step = parts.size() == 4 ? parse_integer(parts[1]) : std::nullopt;
  if (!rank || *rank < 0 || !step || (parts[3] != "kill" && parts[3] != "stop" && parts[3] != "hang")) {
    throw ConfigError("comm.fault must be RANK:STEP:PHASE:kill|stop|hang, got \"{}\"", text);
  }
  static const std::set<std::string, std::less<>> phases{
      "data", "forward", "backward", "exchange", "update", "evaluation", "checkpoint", "synchronisation"};
  if (!phases.contains(parts[2])) {
    throw ConfigError("comm.fault={} names no phase of a run; there are: {}", text, fmt::join(phases, ", "));
  }
  FaultInjection fault{.rank = static_cast<int>(*rank), .step = *step, .phase = std::string(parts[2])};
  fault.kind = parts[3] == "kill"   ? FaultInjection::Kind::kKill
               : parts[3] == "stop" ? FaultInjection::Kind::kStop
                                    : FaultInjection::Kind::kHang;
  return fault;
}

}  // namespace syncopate::run
