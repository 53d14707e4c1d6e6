#include "syncopate/sim/steps/crossings.h"

#include <algorithm>
#include <utility>

namespace syncopate::sim {
namespace {

/// Messages of a stage that may be under way before it waits for the first of them
/// (parallel/engines/pipeline_engine.cpp).
constexpr size_t kSendsUnderWay = 8;

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
