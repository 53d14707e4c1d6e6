#include "syncopate/plan/job.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "syncopate/base/error.h"
#include "syncopate/sim/measured_for.h"
#include "syncopate/sim/stages.h"

namespace syncopate::plan {
namespace {

constexpr double kBytes = 4;                     // of a number, fp32
constexpr double kBucketBytes = 25 * 1048576.0;  // strategy.bucket_mib

/// Packing and unpacking together where no profile says it: 10 GB/s each
/// (bench/reports/2026-11-15-codecs.md).
constexpr double kCodingSecondsPerGb = 0.2;

}  // namespace

StageWork Job::work(double examples) const {
  if (!profile) {
    const double all = compute_s * examples / this->examples();
    return {.forward_s = all / 3, .backward_s = all * 2 / 3};
  }
  const sim::BatchTime time = profile->at(examples);
  const double share = sim::core_factor(*profile, 1, 0);  // a device has such a machine to itself
  return {share * time.forward_s, share * time.backward_s, share * (time.update_s + time.other_s)};
}

bool Job::divides(int replicas, int micro_batches) const {
  return global_batch == 0 || global_batch % (static_cast<int64_t>(replicas) * micro_batches) == 0;
}

Job job_from_figures(double gradient_gb, double activation_gb, double compute_s, int layers) {
  Job job{.compute_s = compute_s};
  for (int k = 0; k < layers; ++k) {
    job.layers.push_back({.name = std::to_string(k),
                          .share = 1.0 / layers,
                          .parameters = std::llround(gradient_gb * 1e9 / kBytes / layers),
                          .output_bytes = activation_gb * 1e9});
  }
  return job;
}

Job job_from_profile(const sim::Profile& profile, int64_t global_batch) {
  if (profile.times.empty())
    throw ConfigError("the profile of {} has no times; measure one with `syncopate probe --profile FILE`",
                      profile.model);
  Job job{.name = profile.model, .layers = profile.layers, .profile = profile, .global_batch = global_batch};
  if (job.layers.empty()) {  // a model that cannot be cut
    job.layers.push_back({.name = "all", .share = 1, .parameters = profile.elements()});
  }
  job.optimizer_bytes = profile.optimizer == "sgd" || profile.optimizer == "lars" ? kBytes : 2 * kBytes;
  job.epoch_examples = profile.training_examples;
  return job;
}

std::vector<int> split_layers(const Job& job, int stages) {
  std::vector<int> split;
  int next = 0;
  for (const size_t count : sim::balanced_layers(job.layers, static_cast<size_t>(stages))) {
    split.push_back(next);
    next += static_cast<int>(count);
  }
  return split;
}

std::vector<Memory> memory_of(const Job& job, const std::vector<int>& split, int replicas,
                              int micro_batches) {
  const bool pipeline = split.size() > 1;
  const double kept = job.examples() / replicas / (pipeline ? 1 : micro_batches);
  std::vector<Memory> all;
  for (size_t s = 0; s < split.size(); ++s) {
    const int end = s + 1 < split.size() ? split[s + 1] : job.depth();
    Memory memory;
    for (int k = split[s]; k < end; ++k) {
      const sim::LayerProfile& layer = job.layers[static_cast<size_t>(k)];
      memory.weights += kBytes * static_cast<double>(layer.parameters);
      memory.activations += layer.activation_bytes * kept;
    }
    memory.gradients = memory.weights;
    memory.optimizer = memory.weights / kBytes * job.optimizer_bytes;
    all.push_back(memory);
  }
  return all;
}

Codings codings(const std::optional<sim::Profile>& profile, int forward_bits, int backward_bits,
                int gradient_bits) {
  const auto with = [&](const char* codec, int bits, double of_scales) {
    Coding coding{codec, bits + of_scales, bits == 32 ? 0 : kCodingSecondsPerGb};
    if (!profile) return coding;
    for (const sim::CodecSpeed& speed : profile->codecs) {
      if (speed.name == coding.name) coding.s_per_gb = (speed.encode_s + speed.decode_s) * 1e9 / kBytes;
    }
    return coding;
  };
  // A step for every channel of a micro-batch, two bytes: with a few hundred rows a twentieth of a bit.
  const auto activation = [&](int bits) {
    return bits > 8 ? with(bits == 32 ? "none" : "fp16", bits, 0)
                    : with(bits > 4 ? "int8" : "int4", bits, 0.05);
  };
  Codings all{.activations = {}, .gradient = {}};
  const int either = std::max(forward_bits, backward_bits), few = std::min(forward_bits, backward_bits);
  for (const int bits : {32, 16, 8}) {
    if (bits >= either) all.activations.emplace_back(activation(bits), activation(bits));
  }
  // Codecs of few bits have a number for each direction; the others one for both.
  if (either <= 8 && few < 8)
    all.activations.emplace_back(activation(forward_bits), activation(backward_bits));
  for (const auto& [bits, codec, of_scales] :
       {std::tuple{32, "none", 0.0}, {16, "fp16", 0.0}, {8, "int8", 0.06}, {4, "int4", 0.25}}) {
    if (bits >= gradient_bits) all.gradient.push_back(with(codec, bits, of_scales));
  }
  return all;
}

Problem make_problem(const Job& job, const Pairs& pairs, const std::vector<double>& speed, const Shape& shape,
                     const Bits& bits, bool overlap) {
  const std::vector<int> split = split_layers(job, shape.stages);
  const double examples = job.examples() / shape.replicas / shape.micro_batches;
  const StageWork all = job.work(examples);
  Problem problem{.stages = shape.stages,
                  .replicas = shape.replicas,
                  .pairs = pairs,
                  .speed = speed,
                  .gradient = bits.gradient,
                  .forward = bits.forward,
                  .backward = bits.backward,
                  .micro_batches = shape.micro_batches,
                  .overlap = overlap};
  double parameters_of_all = 0, largest_gb = 0;
  for (const sim::LayerProfile& layer : job.layers)
    parameters_of_all += static_cast<double>(layer.parameters);
  for (size_t s = 0; s < split.size(); ++s) {
    const int end = s + 1 < split.size() ? split[s + 1] : job.depth();
    double share = 0, parameters = 0;
    for (int k = split[s]; k < end; ++k) {
      share += job.layers[static_cast<size_t>(k)].share;
      parameters += static_cast<double>(job.layers[static_cast<size_t>(k)].parameters);
    }
    const double of_update = parameters_of_all > 0 ? parameters / parameters_of_all : 0;
    problem.work.push_back({all.forward_s * share, all.backward_s * share, all.update_s * of_update});
    problem.gradient_gb.push_back(parameters * kBytes / 1e9);
    largest_gb = std::max(largest_gb, problem.gradient_gb.back());
    if (s + 1 < split.size())
      problem.cut_gb.push_back(job.layers[static_cast<size_t>(end - 1)].output_bytes * examples / 1e9);
  }
  problem.hidden_share = 1 - 1 / std::max(1.0, largest_gb * 1e9 / kBucketBytes);
  return problem;
}

}  // namespace syncopate::plan
