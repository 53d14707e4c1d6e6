#include "syncopate/parallel/strategies/one_bit.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/comm/metering/payload.h"
#include "syncopate/optim/clip.h"
#include "syncopate/optim/pass.h"

namespace syncopate::parallel {

OneBit::OneBit(comm::Group& group, std::unique_ptr<Strategy> warming, Options options)
    : group_(group),
      warming_(std::move(warming)),
      options_(options),
      signs_(group, codec::make_codec({.name = "sign"}),
             {.error_feedback = options.error_feedback, .scaled = false, .name = "one-bit"}),
      rows_(signs_, codec::make_codec({.name = "int8"})),
      frozen_at_(at::zeros({1}, at::kLong)) {}

void OneBit::start(Replica& replica) {
  adam_ = dynamic_cast<optim::AdamW*>(&replica.optimizer);
  if (adam_ == nullptr) throw ConfigError("1-bit Adam needs the optimizer adamw");
  warming_->start(replica);
  signs_.attach(replica);
  tables_.clear();
  dense_.clear();
  const tensor::FlatParams& params = replica.params;
  const auto& entries = params.entries();
  const std::vector<at::Tensor> tables = replica.model.row_tables();
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : params.size();
    const auto table = std::find_if(tables.begin(), tables.end(),
                                    [&](const at::Tensor& t) { return params.find(t) == &entries[i]; });
    if (table != tables.end()) {
      tables_.push_back(
          std::make_unique<RowExchange>(group_, params, entries[i], table->size(0), table->size(1), false));
    } else if (!dense_.empty() && dense_.back().end == entries[i].offset) {
      dense_.back().end = end;
    } else {
      dense_.push_back({entries[i].offset, end});
    }
  }
}

void OneBit::before_backward(Replica& replica, const StepContext& context, bool last_micro) {
  // Every rank makes the same updates, and so comes to this at the same step.
  compressing_ = frozen() || (context.step >= options_.warmup && adam_->steps_done() > 0);
  if (!compressing_) return warming_->before_backward(replica, context, last_micro);
  if (!last_micro) return;
  signs_.begin(context.step);
  for (const auto& table : tables_) table->announce(rows_read(replica, context, table->entry()));
}

Update OneBit::step(Replica& replica, const StepContext& context) {
  if (!compressing_) return warming_->step(replica, context);
  if (!frozen()) freeze(replica);
  if (!weights_.defined()) weigh(replica);
  const double scale = 1 / context.count;
  const double loss_scale = replica.loss_scale == nullptr ? 1 : replica.loss_scale->value();
  const double norm = agreed_norm(replica, scale / loss_scale);
  Update update = replica.judge(norm);
  update.touched.emplace();
  if (update.skipped) return update;
  // What is kept for later must not be in a scale that changes.
  if (loss_scale != 1) replica.params.grads.mul_(1 / loss_scale);
  exchange_and_update(replica, context, scale * optim::clip_factor(norm, replica.clip), update);
  return update;
}

double OneBit::agreed_norm(const Replica& replica, double scale) {
  const double mine = optim::gradient_norm(replica.params.grads, scale);
  const at::Tensor sum = at::full({1}, mine * mine, at::kDouble);
  group_.all_reduce(sum, comm::Op::kSum).wait();
  return replica.whole_norm(std::sqrt(sum.item<double>()));
}

void OneBit::freeze(Replica& replica) {
  *frozen_at_.data_ptr<int64_t>() = adam_->steps_done();
  weigh(replica);
  for (const Slice& range : dense_) range.of(adam_->first()).mul_(range.of(weights_));
}

void OneBit::weigh(const Replica& replica) {
  constexpr double kLeast = 0.01;
  const auto steps = static_cast<double>(*frozen_at_.data_ptr<int64_t>());
  const double correction = 1 - std::pow(adam_->options().beta2, steps);
  weights_ = at::zeros_like(adam_->second());
  idle_.clear();
  for (const auto& entry : replica.params.entries()) {
    const bool is_dense = std::any_of(dense_.begin(), dense_.end(), [&](const Slice& range) {
      return range.begin <= entry.offset && entry.offset < range.end;
    });
    if (!is_dense) continue;
    const at::Tensor second = adam_->second().narrow(0, entry.offset, entry.size);
    const double mean = std::sqrt(second.mean(at::kDouble).item<double>() / correction);
    if (!(mean > 0)) {
      idle_.push_back({entry.offset, entry.offset + entry.size});
      continue;
    }
    const at::Tensor root =
        second.div(correction).sqrt_().clamp_min_(kLeast * mean).add_(adam_->options().eps);
    weights_.narrow(0, entry.offset, entry.size).copy_(root.reciprocal_());
  }
}

void OneBit::exchange_and_update(Replica& replica, const StepContext& context, double scale, Update& update) {
  const at::NoGradGuard no_grad;
  tensor::FlatParams& params = replica.params;
  const optim::OptimizerOptions& options = adam_->options();
  const comm::Carrying carrying(comm::Payload::kGradients);
  std::vector<comm::Pending> pending;
  for (const Slice& range : dense_) {
    // The sum over ranks is the new momentum: each brings its gradient and a share of the old momentum.
    const at::Tensor momentum = range.of(adam_->first());
    momentum.mul_(options.beta1 / group_.size())
        .addcmul_(range.of(params.grads), range.of(weights_), (1 - options.beta1) * scale);
    pending.push_back(signs_.start({momentum, range.begin}));
  }
  for (const auto& table : tables_) table->start(rows_);
  for (comm::Pending& sum : pending) sum.wait();

  const Stopwatch watch;
  adam_->set_steps_done(adam_->steps_done() + 1);
  for (const Slice& range : idle_) range.of(adam_->first()).zero_();
  const double correction = 1 - std::pow(options.beta1, static_cast<double>(adam_->steps_done()));
  for (const Slice& range : dense_) {
    optim::for_each_span(params, range.begin, range.end, [&](int64_t begin, int64_t end, bool decay) {
      const Slice span{begin, end};
      const at::Tensor values = span.of(params.values);
      if (decay) values.mul_(1 - context.lr * options.weight_decay);
      values.add_(span.of(adam_->first()), -context.lr / correction);
    });
  }
  update.apply_seconds += watch.seconds();
  for (const auto& table : tables_) {
    const at::Tensor rows = table->finish();
    const auto& entry = table->entry();
    if (rows.defined()) update.touched->push_back({entry.parameter, rows});
    const Stopwatch tables;
    adam_->update(params, context.lr, scale, entry.offset, entry.offset + entry.size);
    update.apply_seconds += tables.seconds();
  }
}

std::vector<StateTensor> OneBit::state() {
  std::vector<StateTensor> state = warming_->state();
  state.push_back({.name = "one-bit.frozen_at", .tensor = frozen_at_, .scope = Scope::kCommon});
  append(state, "", signs_.state());
  return state;
}

}  // namespace syncopate::parallel
