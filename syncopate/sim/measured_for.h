#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/sim/profile.h"
#include "syncopate/spec/run_spec.h"

// What a profile may be used for.
namespace syncopate::sim {

/// What somebody asked for; empty or 0: nothing.
struct Asked {
  std::string task{}, model{}, precision{}, device{}, optimizer{};
  int64_t max_length = 0;
};

/// Throws ConfigError, with both values, where the profile says that it was measured with something else.
void require_measured_for(const Profile& profile, const Asked& asked);

/// The same for a spec of which `given` names what somebody gave (spec/effect.h); what nobody asked for
/// becomes the profile's. What that was, a setting each: "--task rte".
std::vector<std::string> take_settings(const Profile& profile, spec::RunSpec& spec,
                                       const std::vector<std::string>& given);

/// What the times of a profile are multiplied with where so many workers compute at once on such a machine
/// with so many threads each (0: as many as by default). Work is taken to be divided evenly among the cores
/// that a worker has; 1 where the cores are not known, and on other devices than the CPU.
double core_factor(const Profile& profile, int64_t workers, int64_t threads);

/// What core_factor does to the times, in a sentence; empty: nothing.
std::string core_note(const Profile& profile, int64_t workers, int64_t threads);

}  // namespace syncopate::sim
