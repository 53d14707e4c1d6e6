#include "syncopate/plan/play.h"

#include <fmt/format.h>

#include <cmath>

#include "syncopate/sim/predict.h"

namespace syncopate::plan {
namespace {

/// What `train --placement` would be told (plan/placement_file.h), ranks in the order of stages.
spec::RunSpec spec_of(const Request& request, const Shape& shape, const Problem& problem) {
  const std::vector<int> split = split_layers(request.job, shape.stages);
  spec::RunSpec spec;
  spec.complete();
  spec.comm.workers = shape.stages * shape.replicas;
  spec.train.global_batch = request.job.global_batch;
  spec.pipeline.stages = shape.stages;
  spec.pipeline.schedule = "gpipe";
  std::string layout, cut;
  for (int stage = 0, rank = 0; stage < shape.stages; ++stage) {
    if (stage > 0) layout += "/", cut += ",";
    for (int replica = 0; replica < shape.replicas; ++replica)
      layout += fmt::format("{}{}", replica > 0 ? "," : "", rank++);
    const auto s = static_cast<size_t>(stage);
    const int end = s + 1 < split.size() ? split[s + 1] : request.job.depth();
    cut += fmt::format("{}", end - split[s]);
  }
  if (shape.stages == 1) {
    spec.train.accumulate = shape.micro_batches;
  } else {
    spec.pipeline.micro_batches = shape.micro_batches;
    spec.pipeline.layout = layout;
    spec.pipeline.cut = cut;
    const double bits = std::floor(problem.forward.bits);
    spec.activation.codec = bits > 16 ? "none" : bits > 8 ? "fp16" : "direct";
    if (bits <= 8) {
      spec.activation.forward_bits = std::llround(bits);
      spec.activation.backward_bits = std::llround(std::floor(problem.backward.bits));
    }
  }
  if (shape.replicas > 1) spec.codec.name = problem.gradient.name;
  return spec;
}

}  // namespace

bool can_play(const Request& request, const Shape& shape) {
  if (!request.job.profile || request.job.global_batch == 0 || !request.overlap) return false;
  const double stages = shape.stages, replicas = shape.replicas;
  const double messages = 2 * replicas * ((stages - 1) * shape.micro_batches + stages * (replicas - 1));
  constexpr double kMost = 100'000;
  return messages <= kMost;
}

double played_out(const Request& request, const Shape& shape, const Problem& problem, const Layout& layout) {
  if (!can_play(request, shape)) return 0;
  const Job& job = request.job;
  sim::Scene scene{.topology = request.topology, .profile = *job.profile};
  scene.profile.layers = job.layers;
  if (scene.profile.parameters.empty())
    for (const sim::LayerProfile& layer : job.layers)
      scene.profile.parameters.push_back({.name = layer.name, .shape = {layer.parameters}});
  for (const int device : layout.device) scene.seats.push_back(scene.topology.host_of(device));
  return sim::predict(spec_of(request, shape, problem), scene).ms / 1e3;
}

}  // namespace syncopate::plan
