#include "syncopate/sim/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::sim {
namespace {

/// Packing, or unpacking, a number of fp32: 4 GB/s (bench/activations.cpp). One that is remembered is read
/// and written as well.
constexpr double kCodingSeconds = 1e-9, kRememberingSeconds = 2e-9;

/// Bytes of a hidden state of so many examples behind a block, as a codec sends it.
double sent_bytes(const spec::RunSpec& spec, const LayerProfile& block, double real_share, double examples,
                  int64_t bits) {
  const spec::ActivationCodecInfo& codec = spec::activation_codec_info(spec.activation.codec);
  const double numbers = block.output_bytes / 4 * examples, real = numbers * real_share;
  if (codec.quantises)  // and a step of two bytes for each channel
    return real * static_cast<double>(bits) / 8 + 2 * static_cast<double>(block.channels);
  return codec.name == "none" ? 4 * numbers : 2 * real;
}

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
        if (slowest < best[here] + 1e-12) {  // of equals the last, whatever rounding says
          best[here] = std::min(best[here], slowest);
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

std::vector<size_t> blocks_of_stages(const spec::RunSpec& spec, const std::vector<LayerProfile>& blocks) {
  const auto stages = static_cast<size_t>(spec.pipeline.stages);
  if (spec.pipeline.cut.empty()) {
    if (blocks.empty()) {
      throw ConfigError(
          "the profile does not say what layers a pipeline may cut between; measure one with `syncopate "
          "probe "
          "--profile FILE` on a CPU");
    }
    return balanced_layers(blocks, stages);
  }
  std::vector<size_t> counts;
  for (const std::string_view part : split(spec.pipeline.cut, ','))
    counts.push_back(static_cast<size_t>(parse_integer(part).value_or(0)));
  if (std::accumulate(counts.begin(), counts.end(), size_t{0}) != blocks.size()) {
    throw ConfigError("pipeline.cut={} has {} blocks and the profile's model {}; give numbers with that sum",
                      spec.pipeline.cut, std::accumulate(counts.begin(), counts.end(), size_t{0}),
                      blocks.size());
  }
  return counts;
}

std::vector<StageCost> stage_costs(const spec::RunSpec& spec, const Profile& profile) {
  const double parts = static_cast<double>(spec.train.accumulate * spec.micro_batches());
  const double examples =
      static_cast<double>(spec.examples_per_step()) / static_cast<double>(spec.replicas()) / parts;
  const BatchTime time = profile.at(examples);
  const spec::ActivationCodecInfo& codec = spec::activation_codec_info(spec.activation.codec);
  std::vector<StageCost> costs;
  double coding = 0, back_bytes = 0;  // of the cut before
  size_t next = 0;
  const std::vector<size_t> counts = blocks_of_stages(spec, profile.layers);
  for (size_t stage = 0; stage < counts.size(); ++stage) {
    StageCost& cost = costs.emplace_back();
    double share = 0;
    for (size_t i = 0; i < counts[stage]; ++i, ++next) share += profile.layers[next].share;
    cost.forward_s = share * time.forward_s;
    cost.backward_s = share * time.backward_s;
    cost.unpack_s = cost.pack_gradient_s = coding;
    cost.backward_bytes = back_bytes;
    if (stage + 1 == counts.size()) break;
    const LayerProfile& block = profile.layers[next - 1];
    const auto bytes = [&](int64_t bits) {
      return std::max(1.0, sent_bytes(spec, block, profile.real_share, examples, bits));
    };
    const double numbers = block.output_bytes / 4 * examples * profile.real_share;
    coding = codec.name == "none" ? 0 : numbers * (codec.remembers ? kRememberingSeconds : kCodingSeconds);
    cost.pack_s = cost.unpack_gradient_s = coding;
    cost.forward_bytes = bytes(spec.activation.forward_bits);
    back_bytes = bytes(spec.activation.backward_bits);
  }
  return costs;
}

std::vector<std::vector<ParameterProfile>> stage_parameters(const spec::RunSpec& spec,
                                                            const Profile& profile) {
  const std::vector<size_t> counts = blocks_of_stages(spec, profile.layers);
  std::vector<size_t> stage_of;
  for (size_t stage = 0; stage < counts.size(); ++stage)
    stage_of.insert(stage_of.end(), counts[stage], stage);
  std::vector<std::vector<ParameterProfile>> all(counts.size());
  const bool known = !profile.parameters.empty() &&
                     std::all_of(profile.parameters.begin(), profile.parameters.end(), [&](const auto& each) {
                       return each.layer >= 0 && each.layer < static_cast<int64_t>(stage_of.size());
                     });
  if (known) {
    for (const ParameterProfile& parameter : profile.parameters)
      all[stage_of[static_cast<size_t>(parameter.layer)]].push_back(parameter);
  } else {
    for (size_t block = profile.layers.size(); block-- > 0;)
      all[stage_of[block]].push_back({.name = profile.layers[block].name,
                                      .shape = {profile.layers[block].parameters},
                                      .layer = static_cast<int64_t>(block)});
  }
  // Shares of the whole model's backward pass become shares of the stage's: its first gradients come when the
  // stages behind it are through.
  double begun = 0;
  for (size_t stage = counts.size(), block = profile.layers.size(); stage-- > 0;) {
    double share = 0;
    for (size_t i = 0; i < counts[stage]; ++i) share += profile.layers[--block].share;
    for (ParameterProfile& parameter : all[stage]) {
      if (share > 0) parameter.ready = std::clamp((parameter.ready - begun) / share, 0.0, 1.0);
    }
    begun += share;
  }
  return all;
}

}  // namespace syncopate::sim
