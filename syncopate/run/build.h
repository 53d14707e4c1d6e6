#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/optim/schedule.h"
#include "syncopate/parallel/strategy.h"
#include "syncopate/run/spec.h"

// From names to objects: read build.cpp to know which strategies, optimizers and schedules exist, and
// families.cpp for the tasks and models.
namespace syncopate::run {

const std::vector<std::string>& strategy_names();
void require_strategy(const std::string& name);  ///< throws ConfigError with a suggestion

std::unique_ptr<parallel::Strategy> make_strategy(const RunSpec::Strategy& spec, comm::Group& group);
std::unique_ptr<optim::Optimizer> make_optimizer(const RunSpec::Optim& spec,
                                                 const tensor::FlatParams& params);
/// `batch`: examples per step over all workers.
optim::Schedule make_schedule(const RunSpec::Optim& spec, int64_t steps, int64_t batch);

}  // namespace syncopate::run
