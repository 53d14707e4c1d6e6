#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/plan/problem.h"
#include "syncopate/sim/profile.h"

namespace syncopate::plan {

/// What is to be trained: layers that a pipeline may be cut between, and what a batch costs.
struct Job {
  std::string name{};
  std::vector<sim::LayerProfile> layers{};
  std::optional<sim::Profile> profile{};
  double compute_s = 0;        ///< where there is no profile: forward and backward of a whole batch
  int64_t global_batch = 0;    ///< examples; 0: one that can be cut at will, and sizes are of the whole of it
  double optimizer_bytes = 8;  ///< per parameter
  double epoch_examples = 0;   ///< 0: not known

  double examples() const { return global_batch > 0 ? static_cast<double>(global_batch) : 1; }
  int depth() const { return static_cast<int>(layers.size()); }
  /// A device of speed 1, on so many examples.
  StageWork work(double examples) const;
  /// Whether a batch can be cut into `replicas` times `micro_batches` alike parts.
  bool divides(int replicas, int micro_batches) const;
};

/// A model of which only this is known, all of it together: its gradient, the activations that a batch sends
/// over one cut, seconds of forward and backward.
Job job_from_figures(double gradient_gb, double activation_gb, double compute_s, int layers);
/// Throws ConfigError for a profile without layers or times.
Job job_from_profile(const sim::Profile& profile, int64_t global_batch);

/// The first layer of each stage: the slowest stage is as fast as can be. Throws ConfigError for more stages
/// than layers.
std::vector<int> split_layers(const Job& job, int stages);

/// Bytes on a device of one stage.
struct Memory {
  double weights = 0, gradients = 0, optimizer = 0, activations = 0;
  double total() const { return weights + gradients + optimizer + activations; }
};
/// All micro-batches of a pipeline are kept until they return (GPipe); without one, a single one is.
std::vector<Memory> memory_of(const Job& job, const std::vector<int>& split, int replicas, int micro_batches);

struct Shape {
  int stages = 1, replicas = 1, micro_batches = 1;
  bool operator==(const Shape&) const = default;
};

/// How numbers travel: one coding for all activations, one for their gradients, one for gradients of weights,
/// as `train` has them.
struct Bits {
  Coding forward{}, backward{}, gradient{};
};
/// What there is to choose from, the most bits first.
struct Codings {
  std::vector<std::pair<Coding, Coding>> activations{{}};  ///< forward and backward
  std::vector<Coding> gradient{{}};
  /// The fewest bits of each.
  Bits fewest() const { return {activations.back().first, activations.back().second, gradient.back()}; }
};
/// Those of at least so many bits that the activation codecs and `--codec` have (32 and 16 go both ways
/// alike), with what packing costs where the profile knows it.
Codings codings(const std::optional<sim::Profile>& profile, int forward_bits, int backward_bits,
                int gradient_bits);

Problem make_problem(const Job& job, const Pairs& pairs, const std::vector<double>& speed, const Shape& shape,
                     const Bits& bits, bool overlap);

}  // namespace syncopate::plan
