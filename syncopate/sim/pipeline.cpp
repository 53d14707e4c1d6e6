#include "syncopate/sim/pipeline.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/sim/engine.h"

namespace syncopate::sim {
namespace {

void check_pipeline(const Pipeline& pipeline, const network::Topology& topology) {
  if (pipeline.stages.empty() || pipeline.stages.front().empty())
    throw ConfigError("a pipeline needs one stage and one device or more");
  if (pipeline.micro_batches < 1 || !(pipeline.micro_batch > 0))
    throw ConfigError("a pipeline needs one micro-batch with an example or more");
  std::set<int> seen;
  for (const auto& stage : pipeline.stages) {
    if (stage.size() != pipeline.stages.front().size())
      throw ConfigError("all stages need as many replicas: one has {}, the first {}", stage.size(),
                        pipeline.stages.front().size());
    for (const int device : stage) {
      if (device < 0 || device >= topology.devices())
        throw ConfigError("device {} does not exist: network {} has {}, numbered from 0", device,
                          topology.name(), topology.devices());
      if (!seen.insert(device).second) throw ConfigError("device {} has two places in the pipeline", device);
    }
  }
}

/// What a stage is made of.
struct Stage {
  double share = 0, parameters = 0, output_bytes = 0, activation_bytes = 0;
};

std::vector<Stage> stages_of(const Pipeline& pipeline, const Profile& profile) {
  const std::vector<size_t> counts =
      pipeline.layers.empty() ? balanced_layers(profile.layers, pipeline.stages.size()) : pipeline.layers;
  if (counts.size() != pipeline.stages.size() ||
      std::accumulate(counts.begin(), counts.end(), size_t{0}) != profile.layers.size())
    throw ConfigError("the stages' layers must be the model's {}, each once", profile.layers.size());
  std::vector<Stage> stages;
  size_t next = 0;
  for (const size_t count : counts) {
    Stage& stage = stages.emplace_back();
    for (size_t i = 0; i < count; ++i, ++next) {
      const LayerProfile& layer = profile.layers[next];
      stage.share += layer.share;
      stage.parameters += static_cast<double>(layer.parameters);
      stage.output_bytes = layer.output_bytes;
      stage.activation_bytes += layer.activation_bytes;
    }
  }
  return stages;
}

class Player {
 public:
  Player(const Pipeline& pipeline, const Profile& profile, const network::Topology& topology)
      : pipeline_(pipeline),
        topology_(topology),
        stages_(stages_of(pipeline, profile)),
        depth_(pipeline.stages.size()),
        replicas_(pipeline.stages.front().size()),
        time_(profile.at(pipeline.micro_batch)),
        engine_(topology, seats(), static_cast<int>(depth_ * replicas_), profile.local) {}

  PipelinePrediction play() {
    for (size_t stage = 0; stage < depth_; ++stage) {
      for (size_t replica = 0; replica < replicas_; ++replica) engine_.actor(rank(stage, replica));
    }
    for (size_t replica = 0; replica < replicas_; ++replica) write_pipeline(replica);
    for (int actor = 0; actor < static_cast<int>(depth_ * replicas_); ++actor) mark(actor);
    for (size_t stage = 0; stage < depth_; ++stage) write_sums(stage);
    for (size_t stage = 0; stage < depth_; ++stage) {
      for (size_t replica = 0; replica < replicas_; ++replica) {
        const int actor = rank(stage, replica);
        compute(actor, stages_[stage].parameters / all_parameters() * (time_.update_s + time_.other_s) *
                           slow(stage, replica));
        mark(actor);
      }
    }
    engine_.play();
    return result();
  }

 private:
  int rank(size_t stage, size_t replica) const { return static_cast<int>(stage * replicas_ + replica); }
  std::vector<int> seats() const {
    std::vector<int> hosts;
    for (const auto& stage : pipeline_.stages) {
      for (const int device : stage) hosts.push_back(topology_.host_of(device));
    }
    return hosts;
  }
  double slow(size_t stage, size_t replica) const {
    const int host = topology_.host_of(pipeline_.stages[stage][replica]);
    return 1 / topology_.hosts()[static_cast<size_t>(host)].speed;
  }
  double all_parameters() const {
    double sum = 0;
    for (const Stage& stage : stages_) sum += stage.parameters;
    return std::max(1.0, sum);
  }

  void put(int actor, Action::Kind kind, int operation) {
    engine_.script(actor).push_back({.kind = kind, .operation = operation});
  }
  void compute(int actor, double seconds) {
    engine_.script(actor).push_back({.kind = Action::Kind::kCompute, .seconds = seconds});
  }
  void mark(int actor) { engine_.script(actor).push_back({.kind = Action::Kind::kMark}); }

  /// Forward and backward passes of a device in their order: true is forward.
  std::vector<bool> schedule(size_t stage) const {
    const auto many = static_cast<size_t>(pipeline_.micro_batches);
    const size_t ahead = pipeline_.gpipe ? many : std::min(many, depth_ - stage);
    std::vector<bool> order(ahead, true);
    for (size_t forward = ahead; forward < many; ++forward) {
      order.push_back(false);
      order.push_back(true);
    }
    order.insert(order.end(), ahead, false);
    return order;
  }

  void write_pipeline(size_t replica) {
    const auto many = static_cast<size_t>(pipeline_.micro_batches);
    // What crosses each cut, by micro-batch: activations on, their gradients back.
    std::vector<std::vector<int>> on(depth_ - 1), back(depth_ - 1);
    for (size_t cut = 0; cut + 1 < depth_; ++cut) {
      const auto bytes = [&](double bits) {
        return std::max(1.0, stages_[cut].output_bytes * pipeline_.micro_batch * bits / 32);
      };
      for (size_t micro = 0; micro < many; ++micro) {
        on[cut].push_back(
            engine_.message(rank(cut, replica), rank(cut + 1, replica), bytes(pipeline_.forward_bits)));
        back[cut].push_back(
            engine_.message(rank(cut + 1, replica), rank(cut, replica), bytes(pipeline_.backward_bits)));
      }
    }
    for (size_t stage = 0; stage < depth_; ++stage) {
      const int actor = rank(stage, replica);
      const double share = stages_[stage].share * slow(stage, replica);
      size_t forward = 0, backward = 0;
      // All receives stand from the start, so that nobody waits for a notice.
      for (size_t micro = 0; micro < many; ++micro) {
        if (stage > 0) put(actor, Action::Kind::kStart, on[stage - 1][micro]);
        if (stage + 1 < depth_) put(actor, Action::Kind::kStart, back[stage][micro]);
      }
      for (const bool ahead : schedule(stage)) {
        if (ahead) {
          if (stage > 0) put(actor, Action::Kind::kWait, on[stage - 1][forward]);
          compute(actor, share * time_.forward_s);
          if (stage + 1 < depth_) put(actor, Action::Kind::kStart, on[stage][forward]);
          ++forward;
        } else {
          if (stage + 1 < depth_) put(actor, Action::Kind::kWait, back[stage][backward]);
          compute(actor, share * time_.backward_s);
          if (stage > 0) put(actor, Action::Kind::kStart, back[stage - 1][backward]);
          ++backward;
        }
      }
    }
  }

  /// Each replica sums an equal part of the stage's gradients and gives the sum back to all.
  void write_sums(size_t stage) {
    if (replicas_ == 1) return;
    const double part = std::max(
        1.0, stages_[stage].parameters * pipeline_.gradient_bits / 8 / static_cast<double>(replicas_));
    for (int round = 0; round < 2; ++round) {
      std::vector<std::vector<int>> mine(replicas_);
      for (size_t a = 0; a < replicas_; ++a) {
        for (size_t step = 1; step < replicas_; ++step) {
          const size_t b = (a + step) % replicas_;
          const int message = engine_.message(rank(stage, a), rank(stage, b), part);
          mine[a].push_back(message);
          mine[b].push_back(message);
        }
      }
      for (size_t replica = 0; replica < replicas_; ++replica) {
        const int actor = rank(stage, replica);
        for (const int message : mine[replica]) put(actor, Action::Kind::kStart, message);
        for (const int message : mine[replica]) put(actor, Action::Kind::kWait, message);
      }
    }
  }

  PipelinePrediction result() const {
    PipelinePrediction found;
    for (int actor = 0; actor < static_cast<int>(depth_ * replicas_); ++actor) {
      const auto& marks = engine_.marks(actor);
      found.pipeline_s = std::max(found.pipeline_s, marks[0].at);
      found.iteration_s = std::max(found.iteration_s, marks[1].at);
      found.compute_s = std::max(found.compute_s, marks[1].compute);
    }
    found.data_parallel_s = found.iteration_s - found.pipeline_s;
    const double examples =
        static_cast<double>(replicas_) * static_cast<double>(pipeline_.micro_batches) * pipeline_.micro_batch;
    found.examples_per_s = examples / found.iteration_s;
    found.events = engine_.events();
    for (const Engine::WireUse& use : engine_.wires())
      found.links.push_back({use.from, use.to, use.bytes, std::min(1.0, use.busy_s / found.iteration_s)});
    for (size_t stage = 0; stage < depth_; ++stage) {
      const auto kept = static_cast<double>(
          pipeline_.gpipe ? pipeline_.micro_batches
                          : std::min<int64_t>(pipeline_.micro_batches, static_cast<int64_t>(depth_ - stage)));
      // fp32: a weight, its gradient and two of an optimizer's numbers.
      found.memory.push_back(16 * stages_[stage].parameters +
                             kept * pipeline_.micro_batch * stages_[stage].activation_bytes);
    }
    return found;
  }

  const Pipeline& pipeline_;
  const network::Topology& topology_;
  std::vector<Stage> stages_;
  size_t depth_, replicas_;
  BatchTime time_;
  Engine engine_;
};

}  // namespace

std::vector<size_t> balanced_layers(const std::vector<LayerProfile>& layers, size_t stages) {
  const size_t depth = layers.size();
  if (stages > depth) {
    throw ConfigError("{} stages are more than the model's {} layer{}; take {} or fewer", stages, depth,
                      depth == 1 ? "" : "s", depth);
  }
  std::vector<double> until{0};
  for (const LayerProfile& layer : layers) until.push_back(until.back() + layer.share);
  // best[s][k]: the slowest of s stages that hold the first k layers.
  const size_t columns = depth + 1;
  std::vector<double> best((stages + 1) * columns, std::numeric_limits<double>::infinity());
  std::vector<size_t> cut(best.size(), 0);
  best[0] = 0;
  for (size_t s = 1; s <= stages; ++s) {
    for (size_t k = s; k <= depth - (stages - s); ++k) {
      const size_t here = s * columns + k;
      for (size_t from = s - 1; from < k; ++from) {
        const double slowest = std::max(best[(s - 1) * columns + from], until[k] - until[from]);
        if (slowest < best[here] - 1e-12) {  // of equals the first, whatever rounding says
          best[here] = slowest;
          cut[here] = from;
        }
      }
    }
  }
  std::vector<size_t> counts(stages);
  for (size_t s = stages, k = depth; s > 0; --s) {
    counts[s - 1] = k - cut[s * columns + k];
    k = cut[s * columns + k];
  }
  return counts;
}

PipelinePrediction predict_pipeline(const Pipeline& pipeline, const Profile& profile,
                                    const network::Topology& topology) {
  check_pipeline(pipeline, topology);
  return Player(pipeline, profile, topology).play();
}

}  // namespace syncopate::sim
