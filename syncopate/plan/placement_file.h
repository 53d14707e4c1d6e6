#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/spec/run_spec.h"

// A placement that `plan` wrote (docs/formats/placement.md), as settings of a run.
namespace syncopate::plan {

struct PlacementFile {
  std::filesystem::path path{};
  std::string network{};  ///< its name
  std::string cluster{};  ///< the file or preset that it was loaded from; empty: not known
  double scale = 1;
  struct Host {
    std::string name{};
    int devices = 1;
    bool operator==(const Host&) const = default;
  };
  std::vector<Host> hosts{};
  std::vector<std::vector<int>> stages{};  ///< the devices of each
  std::string schedule{};
  int64_t micro_batches = 1;
  int64_t global_batch = 0;    ///< 0: not known
  std::vector<int64_t> cut{};  ///< blocks of each stage; empty: not known
  int64_t forward_bits = 32, backward_bits = 32, gradient_bits = 32;
};

/// Throws DataError for what is none, is damaged, or cannot be: a device twice, stages that differ in their
/// replicas.
PlacementFile read_placement(const std::filesystem::path& path);

/// Sets what a placement says about a run: its workers, stages, ranks, micro-batches, cut, codecs and
/// network. Rank i is the i-th of the devices in use. `given` are the settings that somebody gave: those that
/// say the same are fine, others throw ConfigError. A schedule or a batch that was given holds.
void take_placement(const PlacementFile& placement, spec::RunSpec& spec,
                    const std::vector<std::string>& given);

}  // namespace syncopate::plan
