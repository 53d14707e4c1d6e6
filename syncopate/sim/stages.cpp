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

/// Messages of a stage that may be under way before it waits for the first of them
/// (parallel/engines/pipeline_engine.cpp).
constexpr size_t kSendsUnderWay = 8;

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

/// One pass of a stage's schedule: true is forward.
std::vector<bool> passes_of_stage(bool gpipe, size_t stage, size_t stages, size_t micro_batches) {
  const size_t ahead = gpipe ? micro_batches : std::min(micro_batches, stages - stage);
  std::vector<bool> order(ahead, true);
  for (size_t forward = ahead; forward < micro_batches; ++forward) {
    order.push_back(false);
    order.push_back(true);
  }
  order.insert(order.end(), ahead, false);
  return order;
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

Crossings::Crossings(Engine& engine, const spec::RunSpec& spec, std::vector<std::vector<int>> layout,
                     std::vector<StageCost> costs, double tied_bytes)
    : engine_(engine),
      layout_(std::move(layout)),
      costs_(std::move(costs)),
      tied_bytes_(tied_bytes),
      micro_batches_(static_cast<size_t>(spec.train.accumulate * spec.micro_batches())),
      gpipe_(spec.pipeline.schedule == "gpipe") {
  for (size_t replica = 0; replica < layout_.front().size(); ++replica) {
    std::vector<int> ranks;
    for (const std::vector<int>& stage : layout_) ranks.push_back(stage[replica]);
    stages_of_replica_.push_back(engine_.group(std::move(ranks)));
  }
  ranks_ = layout_.size() * layout_.front().size();
}

void Crossings::put(int actor, Action::Kind kind, int operation) {
  engine_.script(actor).push_back({.kind = kind, .operation = operation});
}
void Crossings::compute(int actor, double seconds) {
  engine_.script(actor).push_back({.kind = Action::Kind::kCompute, .seconds = seconds});
}

Crossings::Messages& Crossings::of(int64_t step, size_t replica) {
  const auto [found, is_new] = messages_.try_emplace({step, replica});
  Messages& messages = found->second;
  if (!is_new) return messages;
  const auto rank = [&](size_t stage) { return layout_[stage][replica]; };
  const size_t cuts = layout_.size() - 1;
  messages.on.resize(cuts);
  messages.back.resize(cuts);
  for (size_t cut = 0; cut < cuts; ++cut) {
    for (size_t micro = 0; micro < micro_batches_; ++micro) {
      messages.on[cut].push_back(
          engine_.message(rank(cut), rank(cut + 1), std::max(1.0, costs_[cut].forward_bytes)));
      messages.back[cut].push_back(
          engine_.message(rank(cut + 1), rank(cut), std::max(1.0, costs_[cut + 1].backward_bytes)));
    }
  }
  if (tied_bytes_ > 0) {
    messages.tied_values = engine_.message(rank(0), rank(cuts), tied_bytes_);
    messages.tied_gradients = engine_.message(rank(cuts), rank(0), tied_bytes_);
  }
  messages.norm =
      engine_.exchange(std::vector<double>(layout_.size(), 8), false, 0, stages_of_replica_[replica]);
  return messages;
}

void Crossings::send(int actor, int message) {
  std::vector<int>& sends = sends_[actor];
  if (sends.size() >= kSendsUnderWay + 1)
    put(actor, Action::Kind::kWait, sends[sends.size() - kSendsUnderWay - 1]);
  put(actor, Action::Kind::kStart, message);
  sends.push_back(message);
}

void Crossings::until_last_backward(int64_t step, size_t stage, size_t replica, int actor, double slow) {
  Messages& messages = of(step, replica);
  const StageCost& cost = costs_[stage];
  const bool tied = tied_bytes_ > 0;
  if (tied && (first(stage) || last(stage))) {
    put(actor, Action::Kind::kStart, messages.tied_values);
    if (first(stage)) put(actor, Action::Kind::kStart, messages.tied_gradients);
  }
  // All receives stand from the start, so that nobody waits for a notice.
  for (size_t micro = 0; micro < micro_batches_; ++micro) {
    if (!first(stage)) put(actor, Action::Kind::kStart, messages.on[stage - 1][micro]);
    if (!last(stage)) put(actor, Action::Kind::kStart, messages.back[stage][micro]);
  }
  size_t ahead = 0, behind = 0;
  for (const bool goes_on : passes_of_stage(gpipe_, stage, layout_.size(), micro_batches_)) {
    if (goes_on) {
      if (!first(stage)) {
        put(actor, Action::Kind::kWait, messages.on[stage - 1][ahead]);
        compute(actor, slow * cost.unpack_s);
      }
      if (tied && last(stage) && ahead == 0) put(actor, Action::Kind::kWait, messages.tied_values);
      compute(actor, slow * cost.forward_s);
      if (!last(stage)) {
        compute(actor, slow * cost.pack_s);
        send(actor, messages.on[stage][ahead]);
      }
      ++ahead;
      continue;
    }
    if (behind + 1 == micro_batches_) break;  // the last one is the strategy's
    if (!last(stage)) {
      put(actor, Action::Kind::kWait, messages.back[stage][behind]);
      compute(actor, slow * cost.unpack_gradient_s);
    }
    compute(actor, slow * cost.backward_s);
    if (!first(stage)) {
      compute(actor, slow * cost.pack_gradient_s);
      send(actor, messages.back[stage - 1][behind]);
    }
    ++behind;
  }
  if (tied && first(stage)) put(actor, Action::Kind::kWait, messages.tied_gradients);
}

void Crossings::before_last_backward(int64_t step, size_t stage, size_t replica, int actor, double slow) {
  if (last(stage)) return;
  put(actor, Action::Kind::kWait, of(step, replica).back[stage].back());
  compute(actor, slow * costs_[stage].unpack_gradient_s);
}

void Crossings::behind_last_backward(int64_t step, size_t stage, size_t replica, int actor, double slow) {
  Messages& messages = of(step, replica);
  if (!first(stage)) {
    compute(actor, slow * costs_[stage].pack_gradient_s);
    send(actor, messages.back[stage - 1].back());
  }
  if (tied_bytes_ == 0) return;
  if (last(stage)) {
    put(actor, Action::Kind::kStart, messages.tied_gradients);
    put(actor, Action::Kind::kWait, messages.tied_gradients);
  }
  if (first(stage)) put(actor, Action::Kind::kWait, messages.tied_values);
}

int Crossings::totals(int64_t step, int64_t earlier) {
  const auto [found, is_new] = totals_.try_emplace(step);
  if (is_new)
    found->second =
        engine_.exchange(std::vector<double>(ranks_, 16.0 * static_cast<double>(2 + earlier)), false, 0);
  return found->second;
}

int Crossings::norm(int64_t step, size_t replica) { return of(step, replica).norm; }

}  // namespace syncopate::sim
