#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syncopate/comm/metering/metered.h"
#include "syncopate/data/dataset.h"
#include "syncopate/nn/model.h"
#include "syncopate/nn/stage_model.h"
#include "syncopate/parallel/mesh.h"
#include "syncopate/spec/run_spec.h"

// A model that is cut into pipeline stages, each on ranks of its own.
namespace syncopate::run {

/// Who talks to whom in a run, by its spec: with stages the groups of a stage's replicas and of a replica's
/// stages, else all workers as one.
class RunMesh {
 public:
  RunMesh(const spec::RunSpec& spec, comm::Metered& workers);  ///< collective
  parallel::Mesh mesh() const {
    return replicas_ ? parallel::Mesh{workers_, *replicas_, stages_.get()}
                     : parallel::Mesh::of_replicas(workers_);
  }

 private:
  comm::Metered& workers_;
  std::unique_ptr<comm::Metered> replicas_, stages_;
};

/// Blocks of each stage: as pipeline.cut or `before` (what this run began with) says, or so that stages are
/// even by the time their layers take on a few of the examples, which rank 0 measures. Collective. Throws
/// ConfigError for more stages than blocks.
std::vector<int64_t> choose_cut(const spec::RunSpec& spec, nn::Model& model, const data::Dataset& examples,
                                comm::Group& world, const std::string& before);

/// Makes rank 0's whole model what the stages hold. Collective.
void collect_whole(nn::StageModel& stage, comm::Group& world);

}  // namespace syncopate::run
