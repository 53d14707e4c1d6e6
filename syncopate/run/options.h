#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "syncopate/optim/optimizer.h"
#include "syncopate/optim/schedule.h"
#include "syncopate/parallel/make.h"
#include "syncopate/parallel/pipeline/activation_codec.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/spec/run_spec.h"

// What a spec asks for, in the library's own options. `steps`: of the whole run.
namespace syncopate::run {

parallel::StrategyOptions strategy_options(const spec::RunSpec& spec, int64_t steps);
optim::OptimizerOptions optimizer_options(const spec::RunSpec::Optim& spec);
/// `batch`: examples per step over all workers.
optim::ScheduleOptions schedule_options(const spec::RunSpec::Optim& spec, int64_t batch);
/// What a pipeline does to what travels between its stages; `folder`: where its buffers may lie.
parallel::ActivationOptions activation_options(const spec::RunSpec& spec,
                                               const std::filesystem::path& folder);
/// Why a GPU's steps are launched kernel by kernel though the spec wants them recorded (compute.graphs), as
/// the end of a sentence; empty: they are recorded. `kernels`: this program has kernels of its own for GPUs;
/// `talks`: the model exchanges with other ranks while it computes.
std::string why_no_graphs(const spec::RunSpec& spec, bool kernels, bool talks);
/// What a server does for the run's workers.
parallel::ShardServerOptions server_options(const spec::RunSpec& spec);

}  // namespace syncopate::run
