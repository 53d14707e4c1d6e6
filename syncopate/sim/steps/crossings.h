#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "syncopate/sim/engine.h"
#include "syncopate/sim/stages.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::sim {

/// What crosses between the stages of all replicas, step by step, as parallel::PipelineEngine sends it: the
/// same messages for both of their ends. The engine must outlive it.
class Crossings {
 public:
  /// `layout`: the rank of each stage and replica. `costs`: of each stage.
  Crossings(Engine& engine, const spec::RunSpec& spec, std::vector<std::vector<int>> layout,
            std::vector<StageCost> costs, double tied_bytes);

  /// A stage's step on one rank, around the last backward pass, which others write: what comes before it,
  /// what it waits for, what is done with its result. `slow`: seconds of this rank for one of a device of
  /// speed 1.
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
