#include "syncopate/parallel/strategies/local_steps.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/comm/metering/payload.h"

namespace syncopate::parallel {
namespace {

/// What of a replica beside its parameters is averaged with a fragment.
std::vector<StateTensor> statistics_of(const Replica& replica, const Slice& fragment, bool moments,
                                       bool buffers) {
  std::vector<StateTensor> found;
  if (moments) {
    for (const auto& [name, flat] : replica.optimizer.state()) {
      if (flat.numel() != replica.params.size()) continue;
      found.push_back({.name = "optimizer." + name, .tensor = fragment.of(flat), .laid_at = fragment.begin});
    }
  }
  if (buffers) {
    for (const auto& [name, buffer] : replica.model.buffers()) {
      if (buffer.is_floating_point()) found.push_back({.name = "buffer." + name, .tensor = buffer});
    }
  }
  return found;
}

}  // namespace

Moments parse_moments(const std::string& text) {
  if (text == "keep") return Moments::kKeep;
  if (text == "average") return Moments::kAverage;
  if (text == "reset") return Moments::kReset;
  throw ConfigError("moments must be keep, average or reset, got \"{}\"", text);
}

LocalSteps::LocalSteps(comm::Group& group, std::unique_ptr<Averager> averager, const Options& options,
                       std::unique_ptr<Strategy> before)
    : group_(group),
      averager_(std::move(averager)),
      options_(options),
      before_(std::move(before)),
      done_(at::zeros({1}, at::kLong)),
      all_(at::zeros({1}, at::kDouble)) {
  options_.rounds.validate();
  if (options_.first < 0) {
    throw ConfigError("the first local step must be 0 or more, got {}", options_.first);
  }
  if (options_.moments == Moments::kReset && options_.rounds.fragments > 1) {
    throw ConfigError(
        "moments can be reset with one fragment alone: an optimizer counts its steps for the whole model");
  }
  check((options_.first > 0) == (before_ != nullptr), "who makes the steps before the local ones?");
}

int64_t LocalSteps::done() const { return *done_.data_ptr<int64_t>(); }

void LocalSteps::start(Replica& replica) {
  if (before_) {
    before_->start(replica);
  } else {
    take_parameters_of_rank_zero(replica, group_);
  }
  averager_->attach(replica);
  const Rounds& rounds = options_.rounds;
  fragments_ = fragments_of(replica.params, rounds.fragments);
  examples_ = at::zeros({rounds.fragments}, at::kDouble);
  in_flight_.resize(fragments_.size());
  const bool aside = rounds.delay > 0;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    statistics_.emplace_back(
        statistics_of(replica, fragments_[i], options_.moments == Moments::kAverage, i == 0), aside);
  }
  const Keeps kept = keeps();
  const at::Tensor& values = replica.params.values;
  if (kept.anchor) anchor_ = values.clone();
  if (kept.momentum) momentum_ = at::zeros_like(values);
  if (kept.copy) copy_ = at::zeros_like(values);
  if (aside) {
    travelling_ = at::zeros_like(values);
  } else if (kept.anchor) {  // one fragment at a time
    int64_t longest = 0;
    for (const Slice& fragment : fragments_) longest = std::max(longest, fragment.size());
    travelling_ = at::zeros({longest}, values.options());
  }
}

bool LocalSteps::exchanges(int64_t step) const {
  return step < options_.first || options_.rounds.starting(step - options_.first + 1).has_value();
}

void LocalSteps::before_backward(Replica& replica, const StepContext& context, bool last_micro) {
  if (context.step < options_.first) return before_->before_backward(replica, context, last_micro);
  if (!last_micro) return;
  const auto fragment = options_.rounds.starting(done() + 1);
  if (!fragment) return;
  averager_->begin(context.step);
  all_.fill_(examples_.data_ptr<double>()[*fragment] + context.count);
  all_known_ = group_.all_reduce(all_, comm::Op::kSum);
}

LocalSteps::Slices LocalSteps::slices(const Replica& replica, size_t number) const {
  const Slice& fragment = fragments_[number];
  Slices found{.values = fragment.of(replica.params.values),
               .anchor = fragment.of(anchor_),
               .momentum = fragment.of(momentum_),
               .copy = fragment.of(copy_),
               .mean = {}};
  if (!travelling_.defined()) {
    found.mean = found.values;
  } else if (options_.rounds.delay > 0) {
    found.mean = fragment.of(travelling_);
  } else {
    found.mean = travelling_.narrow(0, 0, fragment.size());
  }
  return found;
}

LocalSteps::Weight LocalSteps::weight_of(double mine, double all) const {
  if (group_.size() == 1) return {};
  if (all > 0) return {mine, all};
  return {1, static_cast<double>(group_.size())};
}

Update LocalSteps::step(Replica& replica, const StepContext& context) {
  if (context.step < options_.first) return before_->step(replica, context);
  check(done() == context.step - options_.first, "a local step was left out or made twice");
  const at::NoGradGuard no_grad;
  if (done() == 0 && anchor_.defined()) anchor_.copy_(replica.params.values);
  const Update update = replica.apply(context);
  examples_.add_(context.count);
  done_.add_(1);
  const Rounds& rounds = options_.rounds;
  const auto starting = rounds.starting(done()), applying = rounds.applying(done());
  if (rounds.delay == 0 && starting) launch(replica, *starting);
  if (applying) finish(replica, *applying);
  if (rounds.delay > 0 && starting) launch(replica, *starting);
  return update;
}

void LocalSteps::launch(Replica& replica, size_t number) {
  all_known_.wait();
  double& mine = examples_.data_ptr<double>()[number];
  const Weight weight = weight_of(mine, *all_.data_ptr<double>());
  mine = 0;
  Slices found = slices(replica, number);
  if (found.copy.defined()) found.copy.copy_(found.values);
  if (found.anchor.defined()) {
    at::sub_out(found.mean, found.anchor, found.values);
  } else if (!found.mean.is_same(found.values)) {
    found.mean.copy_(found.values);
  }
  // A fraction is rounded, and those of three workers do not add up to 1: of differences that is lost in
  // their own rounding, but parameters would drift with every average. Counts are exact, and so is a
  // division.
  const bool differences = found.anchor.defined();
  found.mean.mul_(differences ? weight.fraction() : weight.mine);
  const comm::Carrying carrying(comm::Payload::kParameters);
  statistics_[number].start(group_, weight.fraction());
  in_flight_[number] = {found.mean, differences ? 1 : weight.all,
                        averager_->start({found.mean, fragments_[number].begin})};
}

void LocalSteps::arrive(size_t number) {
  InFlight& exchange = in_flight_[number];
  exchange.pending.wait();
  if (exchange.divisor != 1) exchange.sum.div_(exchange.divisor);
  exchange.divisor = 1;
}

void LocalSteps::finish(Replica& replica, size_t number) {
  arrive(number);
  apply(slices(replica, number));
  statistics_[number].apply();
  if (options_.moments != Moments::kReset) return;
  for (const auto& [name, tensor] : replica.optimizer.state()) at::Tensor(tensor).zero_();
  replica.optimizer.set_steps_done(0);
}

void LocalSteps::wait_for_exchanges() {
  for (size_t i = 0; i < in_flight_.size(); ++i) arrive(i);
}

Settled LocalSteps::settle(Replica& replica) {
  if (done() == 0) return {};  // the steps so far were common ones
  if (!replicas_are_equal()) take_mean(replica);
  for (const auto& [name, buffer] : replica.model.buffers()) {  // a count has no mean
    if (group_.size() > 1 && !buffer.is_floating_point()) group_.broadcast(buffer, 0).wait();
  }
  return {.model = model_name(), .buffers = true};
}

void LocalSteps::take_mean(Replica& replica) {
  const Rounds& rounds = options_.rounds;
  const at::NoGradGuard no_grad;
  at::Tensor all = examples_.clone();
  group_.all_reduce(all, comm::Op::kSum).wait();
  const auto weight = [&](size_t i) {
    return weight_of(examples_.data_ptr<double>()[i], all.data_ptr<double>()[i]);
  };
  for (size_t i = 0; i < fragments_.size(); ++i) {
    Slices found = slices(replica, i);
    if (rounds.under_way(i, done())) {
      arrive(i);
      for (at::Tensor* kept : {&found.anchor, &found.momentum, &found.copy}) {
        if (kept->defined()) *kept = kept->clone();  // training goes on with its own
      }
      apply(found);
    }
    found.values.mul_(weight(i).mine);
  }
  group_.all_reduce(replica.params.values, comm::Op::kSum).wait();
  for (size_t i = 0; i < fragments_.size(); ++i) fragments_[i].of(replica.params.values).div_(weight(i).all);
  Statistics buffers(statistics_of(replica, fragments_.front(), false, true), false);
  buffers.start(group_, weight(0).fraction());
  buffers.apply();
}

bool LocalSteps::replicas_are_equal() const {
  const Rounds& rounds = options_.rounds;
  return done() > 0 && rounds.fragments == 1 && rounds.delay == 0 && done() % rounds.every == 0 &&
         exchange_makes_equal();
}

std::vector<StateTensor> LocalSteps::state() {
  std::vector<StateTensor> state{{.name = "local_steps", .tensor = done_, .scope = Scope::kCommon},
                                 {.name = "examples", .tensor = examples_}};
  wait_for_exchanges();
  const auto keep = [&](const char* name, const at::Tensor& flat, Scope scope, const char* when_resized) {
    if (!flat.defined()) return;
    state.push_back(
        {.name = name, .tensor = flat, .scope = scope, .laid_at = 0, .when_resized = when_resized});
  };
  keep("anchor", anchor_, Scope::kCommon, "");
  keep("momentum", momentum_, Scope::kCommon, "outer momentum was kept");
  keep("copy", copy_, Scope::kOwn, "");
  if (options_.rounds.delay > 0) keep("travelling", travelling_, Scope::kOwn, "");
  for (size_t i = 0; i < statistics_.size(); ++i)
    append(state, fmt::format("travelling.{}.", i), statistics_[i].state());
  append(state, "averager.", averager_->state());
  if (before_) append(state, "before.", before_->state());
  return state;
}

void LocalSteps::resized(int ranks_before) {
  for (size_t i = 0; i < fragments_.size(); ++i) {
    if (!options_.rounds.under_way(i, done())) continue;
    throw ConfigError(
        "the checkpoint was taken with an exchange between its {} worker{} under way, which others cannot "
        "finish; resume with {} worker{}",
        ranks_before, ranks_before == 1 ? "" : "s", ranks_before, ranks_before == 1 ? "" : "s");
  }
}

}  // namespace syncopate::parallel
