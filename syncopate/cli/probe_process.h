#pragma once

#include <filesystem>
#include <string>

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

struct MeasuredMachine {
  network::Topology topology;
  sim::Profile profile;
};
/// The same with the links between that many workers of this machine.
MeasuredMachine measure_machine(spec::RunSpec spec, int64_t workers);

}  // namespace syncopate::cli
