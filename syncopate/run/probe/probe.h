#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/base/progress.h"
#include "syncopate/run/probe/link_probe.h"
#include "syncopate/run/world.h"
#include "syncopate/sim/profile.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::run {

struct ProbeOptions {
  bool links = true, step = true;
  double seconds = 30;             ///< roughly how long the links may take
  std::vector<int64_t> batches{};  ///< see StepProbeOptions
  Progress::Style progress = Progress::Style::kLines;
  std::function<bool()> stop_requested{};
  std::function<void(const std::string&)> note{};  ///< told what a user should know. May be empty
  /// Last resort when this process has learned that the run is lost but does not come back by itself.
  std::function<void(const std::string& sentence)> give_up{};
};

/// What was measured; known at rank 0.
struct ProbeResult {
  std::optional<MeasuredLinks> network{};  ///< with the hosts' speeds where steps were made
  std::optional<sim::Profile> profile{};
  bool links = false;  ///< were measured: else the network is the hosts alone
};

/// Measures links and a step of the spec's model, as one rank of several that do so together. Collective.
/// Throws ReportedError, or another Error before it met the others.
ProbeResult run_probe(const spec::RunSpec& spec, const World& world, const ProbeOptions& options);

}  // namespace syncopate::run
