#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/sim/predict.h"

namespace syncopate::sim {

/// A model in stages over devices: which device makes which part of it.
struct Pipeline {
  /// In pipeline order; the replicas of a stage, of which those at one index form one pipeline.
  std::vector<std::vector<int>> stages{};
  std::vector<size_t> layers{};  ///< of the profile in each stage; empty: as evenly as their times allow
  int64_t micro_batches = 1;     ///< of each pipeline, in an iteration
  double micro_batch = 1;        ///< examples
  double forward_bits = 32, backward_bits = 32;  ///< per number, between stages: activations, their gradients
  double gradient_bits = 32;                     ///< per number, between replicas of a stage
  bool gpipe = false;  ///< all forward passes first, instead of one forward, one backward
};

struct PipelinePrediction {
  double iteration_s = 0;
  double pipeline_s = 0;       ///< until the last backward pass has ended
  double data_parallel_s = 0;  ///< what the sums over replicas add
  double compute_s = 0;        ///< of the device that computes longest
  double examples_per_s = 0;
  std::vector<double>
      memory{};  ///< bytes per stage: weights, gradients, optimizer, activations kept; 0: not known
  std::vector<LinkUse> links{};
  int64_t events = 0;
};

/// How many layers each stage gets so that the longest stage is as short as it can be. Throws ConfigError for
/// more stages than layers.
std::vector<size_t> balanced_layers(const std::vector<LayerProfile>& layers, size_t stages);

/// Plays an iteration out: the schedule, activations and their gradients between stages, then the sums over
/// the replicas of each stage, every device with an equal share of them. Throws ConfigError for a pipeline
/// that could not be: no stages, uneven ones, a device twice or one that is not there.
PipelinePrediction predict_pipeline(const Pipeline& pipeline, const Profile& profile,
                                    const network::Topology& topology);

}  // namespace syncopate::sim
