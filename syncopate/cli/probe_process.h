#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/sim/profile.h"
#include "syncopate/spec/run_spec.h"

// What other commands let `syncopate probe` measure for them, in a process of its own.
namespace syncopate::cli {

/// A folder that is removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder();  ///< throws DataError
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// A step of the spec's model with so many workers computing at once on this machine. Throws DataError with
/// the probe's last words.
sim::Profile measure_profile(spec::RunSpec spec, int64_t workers);

/// Takes from a profile that somebody gave what nobody asked for, and says so. Throws ConfigError where it
/// was measured with something else than what was asked for.
void use_profile(const sim::Profile& profile, spec::RunSpec& spec, const std::vector<std::string>& given);

/// Says what becomes of the profile's times where another number of workers or threads computes at once.
void say_cores(const sim::Profile& profile, int64_t workers, int64_t threads);

struct MeasuredMachine {
  network::Topology topology;
  sim::Profile profile;
};
/// The same with the links between that many workers of this machine.
MeasuredMachine measure_machine(spec::RunSpec spec, int64_t workers);

}  // namespace syncopate::cli
