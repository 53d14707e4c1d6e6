#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/optim/optimizer.h"
#include "syncopate/optim/schedule.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/parallel/strategy.h"
#include "syncopate/run/spec.h"

// From names to objects: read build.cpp to know which strategies, optimizers and schedules exist, and
// families.cpp for the tasks and models.
namespace syncopate::run {

const std::vector<std::string>& strategy_names();
void require_strategy(const std::string& name);  ///< throws ConfigError with a suggestion
/// Its workers are threads of one process instead of processes.
bool runs_in_one_process(const std::string& strategy);

const std::vector<std::string>& codec_names();
/// Throws ConfigError for a codec that does not exist or that the strategy or the optimizer cannot use, and
/// for settings of it that cannot be.
void require_codec(const RunSpec& spec);

/// Throws ConfigError where the chosen strategy cannot work with the settings.
void require_settings(const RunSpec& spec);

/// `steps`: of the whole run. Of the spec it reads `strategy`, `codec` and `optim`. `world`: where servers
/// come behind the workers of `group`, all of them.
std::unique_ptr<parallel::Strategy> make_strategy(const RunSpec& spec, comm::Group& group, int64_t steps,
                                                  comm::Group* world = nullptr);
/// What a server does for the run's workers.
parallel::ShardServerOptions server_options(const RunSpec& spec);
std::unique_ptr<optim::Optimizer> make_optimizer(const RunSpec::Optim& spec,
                                                 const tensor::FlatParams& params);
/// The worker's own: none where servers have it.
std::unique_ptr<optim::Optimizer> make_worker_optimizer(const RunSpec& spec,
                                                        const tensor::FlatParams& params);
/// `batch`: examples per step over all workers.
optim::Schedule make_schedule(const RunSpec::Optim& spec, int64_t steps, int64_t batch);

}  // namespace syncopate::run
