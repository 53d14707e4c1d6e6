#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "syncopate/comm/metering/metered.h"
#include "syncopate/data/loader.h"
#include "syncopate/nn/stage_model.h"
#include "syncopate/optim/loss_scale.h"
#include "syncopate/optim/schedule.h"
#include "syncopate/parallel/engines/pipeline_engine.h"
#include "syncopate/parallel/make.h"
#include "syncopate/parallel/mesh.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/train/trainer.h"

namespace syncopate::run {

/// What decides how a run is composed, beside its spec and its task.
struct AssemblyOptions {
  c10::Device device = c10::kCPU;
  tensor::Precision precision = tensor::Precision::kFp32;
  comm::Group* with_servers = nullptr;  ///< all workers, then all servers; null: there are none
  std::filesystem::path checkpoint{};   ///< empty: none
  nlohmann::ordered_json inputs{};      ///< what a run that resumes must have in common
  std::string cut{};                    ///< of a model in stages, as this run began with it; empty: not known
  std::filesystem::path buffers{};      ///< where a pipeline's buffers may lie, on this rank's machine
  parallel::Trace* trace = nullptr;     ///< where steps are noted; null: nowhere
  std::function<void(const std::string&)> note{};  ///< told what a user should know; may be empty
  /// Kept in checkpoints: what the bits depend on beside the settings.
  nlohmann::ordered_json environment = nlohmann::ordered_json::object();

  // For tests and benchmarks: what stands in for a part, or around it.
  std::function<std::unique_ptr<parallel::Strategy>(comm::Group& replicas)> strategy{};
  std::function<std::unique_ptr<parallel::Strategy>(std::unique_ptr<parallel::Strategy>)> around_strategy{};
  std::function<std::unique_ptr<parallel::Engine>(std::unique_ptr<parallel::Engine>)> around_engine{};
  std::function<double()> clock{};  ///< of the time limit
  std::optional<train::BalanceOptions> balance{};
};

/// A run, put together: what trains the task's model as the spec asks for, on this rank.
class Assembly {
 public:
  Assembly(const spec::RunSpec& spec, tasks::TaskSetup& setup, const parallel::Mesh& mesh,
           const comm::Metered& meter, AssemblyOptions options);
  Assembly(const Assembly&) = delete;  // the replica points into it
  Assembly& operator=(const Assembly&) = delete;

  int64_t parameters() const { return parameters_; }  ///< of the whole model
  const std::string& cut() const { return cut_; }     ///< blocks of each stage; empty: the model is whole
  /// Makes rank 0's whole model, which the setup saves, what the stages hold. After `train`. Collective.
  void collect_model();

  int64_t steps() const { return steps_; }  ///< of the whole run; where workers run free: updates
  parallel::Replica& replica() { return replica_; }
  parallel::Engine& engine() { return *engine_; }
  const parallel::PipelineEngine* pipeline() const { return pipeline_; }  ///< null: the model is whole
  parallel::Strategy& strategy() { return *strategy_.strategy; }
  const parallel::Mesh& mesh() const { return mesh_; }

  /// Trains, from the start or from the checkpoint. Once. Collective.
  train::TrainResult train(train::Listener& listener, bool resume);

 private:
  nn::Model& model() { return stage_ ? *stage_ : *setup_.model; }
  /// The stage of this rank, null where the model stays whole; connects the model to other ranks. Before the
  /// loader is made: whether a model computes together with others decides what it gives.
  std::unique_ptr<nn::StageModel> prepare_model();
  tensor::FlatParams flat_parameters();
  void make_engine();
  bool records_graphs() const;  ///< the GPU's work is recorded
  std::string why_no_graphs() const;
  void make_strategy();
  data::Arrange arrangement() const;
  data::LoaderOptions loader_options() const;

  const spec::RunSpec spec_;
  tasks::TaskSetup& setup_;
  parallel::Mesh mesh_;
  const comm::Metered& meter_;
  AssemblyOptions options_;
  int64_t updates_per_step_;  ///< workers that run free make an update each where others make one together
  std::string cut_, start_hash_;
  int64_t parameters_ = 0;
  std::unique_ptr<nn::StageModel> stage_;  ///< null: the model is whole
  tensor::FlatParams params_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::LossScale loss_scale_;
  parallel::Replica replica_;
  data::Loader loader_;
  int64_t steps_;
  optim::Schedule schedule_;
  parallel::NoiseScale noise_scale_;
  std::unique_ptr<parallel::Engine> engine_;
  const parallel::PipelineEngine* pipeline_ = nullptr;  ///< inside of it
  parallel::MadeStrategy strategy_;
};

/// Composes a run. `setup`, the groups of `mesh`, `meter` (which counts what this rank sends) and what the
/// functions in `options` refer to must outlive it. Collective. Throws ConfigError.
inline Assembly assemble(const spec::RunSpec& spec, tasks::TaskSetup& setup, const parallel::Mesh& mesh,
                         const comm::Metered& meter, AssemblyOptions options = {}) {
  return Assembly(spec, setup, mesh, meter, std::move(options));
}

}  // namespace syncopate::run
