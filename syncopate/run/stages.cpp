#include "syncopate/run/stages.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/parallel/pipeline/cut.h"
#include "syncopate/train/checkpoint_parts.h"

namespace syncopate::run {
namespace {

struct StageSeat {
  int stage = 0, replica = 0;
};

StageSeat seat_of(const spec::RunSpec& spec, int rank) {
  const std::vector<std::vector<int>> layout = spec.layout();
  for (size_t stage = 0; stage < layout.size(); ++stage) {
    for (size_t replica = 0; replica < layout[stage].size(); ++replica) {
      if (layout[stage][replica] == rank) return {static_cast<int>(stage), static_cast<int>(replica)};
    }
  }
  throw InternalError("every rank has a place in the layout");
}

/// Seconds of each layer's forward and backward pass over a batch: the shortest of some.
std::vector<double> seconds_of_layers(nn::Model& model, const tensor::Batch& batch) {
  constexpr int kTries = 3;
  std::vector<double> seconds(static_cast<size_t>(model.depth()), 1e9);
  // Statistics of batch norms stay as they are.
  model.set_mode({.training = true, .noise_key = 1, .again = true});
  for (int i = 0; i < kTries; ++i) {
    at::Tensor hidden;
    for (int layer = 0; layer < model.depth(); ++layer) {
      if (hidden.defined()) hidden = hidden.detach().requires_grad_(true);
      const Stopwatch watch;
      at::Tensor output = model.forward(hidden, batch, {layer, layer + 1});
      if (layer + 1 == model.depth()) {
        model.loss(output, batch).sum.backward();
      } else {
        torch::autograd::backward({output}, {at::ones_like(output)});
      }
      double& shortest = seconds[static_cast<size_t>(layer)];
      shortest = std::min(shortest, watch.seconds());
      hidden = output.detach();
    }
  }
  for (const auto& [name, parameter] : model.parameters()) parameter.mutable_grad().reset();
  return seconds;
}

}  // namespace

RunMesh::RunMesh(const spec::RunSpec& spec, comm::Metered& workers) : workers_(workers) {
  if (spec.pipeline.stages == 1) return;
  const StageSeat seat = seat_of(spec, workers.rank());
  replicas_ = workers.part(seat.stage, seat.replica);
  stages_ = workers.part(seat.replica, seat.stage);
}

std::vector<int64_t> choose_cut(const spec::RunSpec& spec, nn::Model& model, const data::Dataset& examples,
                                comm::Group& world, const std::string& before) {
  const auto stages = static_cast<int>(spec.pipeline.stages);
  if (!spec.pipeline.cut.empty()) return parallel::parse_cut(spec.pipeline.cut);
  parallel::require_blocks(model.blocks(), stages);
  std::string chosen = before;
  if (chosen.empty() && world.rank() == 0) {
    constexpr int64_t kExamples = 8;
    std::vector<int64_t> ids(static_cast<size_t>(std::min(kExamples, examples.size())));
    std::iota(ids.begin(), ids.end(), 0);
    const tensor::Batch batch = examples.collate(ids, data::kEvaluationDraw);
    chosen = parallel::cut_in_words(parallel::balanced_cut(seconds_of_layers(model, batch), stages));
  }
  return parallel::parse_cut(comm::broadcast_text(world, chosen, 0));
}

void collect_whole(nn::StageModel& stage, comm::Group& world) {
  std::vector<parallel::StateTensor> mine;
  for (const auto& tensors : {stage.parameters(), stage.buffers()}) {
    for (const auto& [name, tensor] : tensors)
      mine.push_back({.name = name, .tensor = tensor, .scope = parallel::Scope::kCommon});
  }
  const std::vector<tensor::NamedTensor> gathered = train::gather(world, mine);
  if (world.rank() != 0) return;
  std::map<std::string, at::Tensor> values;
  for (const auto& [name, tensor] : gathered) values[name] = tensor;
  for (const auto& tensors : {stage.whole().parameters(), stage.whole().buffers()}) {
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor& value = values.at(name);
      // What another stage has was let go; a tied table was borrowed and is what it was in the last step.
      tensor.set_data(value.to(tensor.device()));
    }
  }
}

}  // namespace syncopate::run
