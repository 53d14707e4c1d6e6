#include "syncopate/spec/fault.h"

#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string_view>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::spec {

std::optional<Fault> parse_fault(const std::string& text) {
  if (text.empty()) return std::nullopt;
  static const std::map<std::string_view, Fault::Kind> kinds{{"kill", Fault::Kind::kKill},
                                                             {"stop", Fault::Kind::kStop},
                                                             {"hang", Fault::Kind::kHang},
                                                             {"throw", Fault::Kind::kThrow},
                                                             {"leave", Fault::Kind::kLeave}};
  static const std::set<std::string_view> phases{"data",   "forward",    "backward",   "exchange",
                                                 "update", "evaluation", "checkpoint", "synchronisation"};
  const auto parts = split(text, ':');
  const auto rank = parts.size() == 4 ? parse_integer(parts[0]) : std::nullopt;
  const auto step = parts.size() == 4 ? parse_integer(parts[1]) : std::nullopt;
  if (!rank || *rank < 0 || !step || !kinds.contains(parts[3])) {
    throw ConfigError("comm.fault must be {}, got \"{}\"", kFaultForm, text);
  }
  if (!phases.contains(parts[2])) {
    throw ConfigError("comm.fault={} names no phase of a run; choose one of: {}", text,
                      fmt::join(phases, ", "));
  }
  return Fault{.rank = static_cast<int>(*rank),
               .step = *step,
               .phase = std::string(parts[2]),
               .kind = kinds.at(parts[3])};
}

}  // namespace syncopate::spec
