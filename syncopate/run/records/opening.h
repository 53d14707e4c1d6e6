#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/spec/run_spec.h"
#include "syncopate/tasks/setup.h"

namespace syncopate::run {

/// What a run is about to do.
struct Opening {
  const spec::RunSpec& spec;
  const tasks::TaskSetup& setup;
  int64_t parameters = 0;
  int64_t steps = 0;
  std::string launcher;  ///< World::launcher
  std::string backend;   ///< comm::Membership::backend
  std::string cut;       ///< blocks of each stage; empty: the model is whole
  std::filesystem::path folder;
};

/// For people, in a few lines: task, model, strategy and workers, data and steps, stages, and how to watch
/// it.
std::vector<std::string> lines_of(const Opening& opening);

}  // namespace syncopate::run
