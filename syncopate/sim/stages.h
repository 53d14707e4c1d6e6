#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "syncopate/sim/engine.h"
#include "syncopate/sim/profile.h"
#include "syncopate/spec/run_spec.h"

// What a model in pipeline stages does in a step, as parallel::PipelineEngine does it.
namespace syncopate::sim {

/// One stage and one micro-batch. Seconds are of a device of speed 1.
struct StageCost {
  double forward_s = 0, backward_s = 0;
  double pack_s = 0, unpack_s = 0;                    ///< activations that leave, that come
  double pack_gradient_s = 0, unpack_gradient_s = 0;  ///< their gradients
  double forward_bytes = 0, backward_bytes = 0;       ///< sent to the next stage, to the one before
};

/// How many blocks each stage gets: as pipeline.cut says, or so that the slowest is as fast as can be. Throws
/// ConfigError for more stages than blocks, or another number of them.
std::vector<size_t> blocks_of_stages(const spec::RunSpec& spec, const std::vector<LayerProfile>& blocks);

/// How many blocks each stage gets so that the longest stage is as short as it can be; of equals the one
/// whose last stages are lighter. Throws ConfigError for more stages than blocks.
std::vector<size_t> balanced_layers(const std::vector<LayerProfile>& blocks, size_t stages);

/// What each stage of the spec costs, by a profile of the whole model. Codecs that remember examples are seen
/// behind first visits.
std::vector<StageCost> stage_costs(const spec::RunSpec& spec, const Profile& profile);

/// The parameters of each stage with when they are ready within its own backward pass; a profile that does
/// not know them has one for each block.
std::vector<std::vector<ParameterProfile>> stage_parameters(const spec::RunSpec& spec,
                                                            const Profile& profile);

/// What crosses between the stages of all replicas, step by step: the same messages for both of their ends.
class Crossings {
 public:
  /// `layout`: the rank of each stage and replica. `costs`: of each stage.
  Crossings(Engine& engine, const spec::RunSpec& spec, std::vector<std::vector<int>> layout,
            std::vector<StageCost> costs, double tied_bytes);

  /// A stage's step on one rank, in four parts: up to the last backward pass; what it waits for before it
  /// computes that; what it does with the result. `slow`: seconds of this rank for one of a device of speed
  /// 1.
  void until_last_backward(int64_t step, size_t stage, size_t replica, int actor, double slow);
  void before_last_backward(int64_t step, size_t stage, size_t replica, int actor, double slow);
  void behind_last_backward(int64_t step, size_t stage, size_t replica, int actor, double slow);

  /// Losses, counts and wishes over all ranks, of a step and `earlier` ones: one trip.
  int totals(int64_t step, int64_t earlier);
  /// The sum of squares over a replica's stages: one trip.
  int norm(int64_t step, size_t replica);

 private:
  struct Messages {
    std::vector<std::vector<int>> on, back;  ///< by cut, then micro-batch
    int tied_values = -1, tied_gradients = -1, norm = -1;
  };
  Messages& of(int64_t step, size_t replica);
  void forward(Messages& messages, size_t stage, size_t micro, int actor, double slow);
  void send(int actor, int message);
  void put(int actor, Action::Kind kind, int operation);
  void compute(int actor, double seconds);
  bool first(size_t stage) const { return stage == 0; }
  bool last(size_t stage) const { return stage + 1 == layout_.size(); }

  Engine& engine_;
  std::vector<std::vector<int>> layout_;
  std::vector<StageCost> costs_;
  double tied_bytes_;
  size_t micro_batches_;
  bool gpipe_;
  std::vector<int> stages_of_replica_{};  ///< groups
  std::map<std::pair<int64_t, size_t>, Messages> messages_{};
  std::map<int64_t, int> totals_{};
  std::map<int, std::vector<int>> sends_{};  ///< of an actor, in order
  size_t ranks_ = 0;
};

}  // namespace syncopate::sim
