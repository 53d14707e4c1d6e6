#include "syncopate/parallel/strategies/overlapped.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/comm/metering/payload.h"
#include "syncopate/comm/operations/completion.h"
#include "syncopate/parallel/shared_update.h"

namespace syncopate::parallel {

/// Calls us after a parameter's gradient is in place. An accumulator that nobody holds is made anew by
/// autograd without its hook, so they are held here.
struct Overlapped::Hooks {
  // A shared_ptr in libtorch 1.13, an intrusive_ptr in 2.13.
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));
  std::vector<Accumulator> accumulators;
  std::vector<uintptr_t> keys;
};

Overlapped::Overlapped(comm::Group& group, std::unique_ptr<Averager> averager, Options options,
                       Observer observer)
    : group_(group), averager_(std::move(averager)), options_(options), observer_(std::move(observer)) {
  if (!(options_.bucket_mib > 0))
    throw ConfigError("bucket_mib must be above 0, got {}", options_.bucket_mib);
  if (!(options_.first_bucket_mib > 0)) {
    throw ConfigError("first_bucket_mib must be above 0, got {}", options_.first_bucket_mib);
  }
}

Overlapped::~Overlapped() {
  if (!hooks_) return;
  for (size_t i = 0; i < hooks_->accumulators.size(); ++i)
    hooks_->accumulators[i]->del_post_hook(hooks_->keys[i]);
}

void Overlapped::start(Replica& replica) {
  take_parameters_of_rank_zero(replica, group_);
  params_ = &replica.params;
  if (averager_->sums_into_common()) SharedUpdate::begin(group_, replica);
  if (averager_->sums_in_place()) keep_gradients_in(group_, replica.params);
  averager_->attach(replica);
  buckets_.clear();
  build(replica.model.row_tables());
  hooks_ = std::make_unique<Hooks>();
  const auto& entries = params_->entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(entries[i].parameter);
    hooks_->keys.push_back(
        accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [this, i](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
              ready(i);
              return outputs;
            })));
    hooks_->accumulators.push_back(std::move(accumulator));
  }
}

void Overlapped::build(const std::vector<at::Tensor>& tables) {
  const auto& entries = params_->entries();
  const double bytes_per_element = static_cast<double>(params_->grads.element_size());
  bucket_of_.assign(entries.size(), 0);
  double room = options_.first_bucket_mib;
  bool open = false;
  for (size_t i = 0; i < entries.size(); ++i) {
    const at::Tensor* by_rows = nullptr;
    for (const at::Tensor& table : tables) {
      if (options_.sparse_rows && params_->find(table) == &entries[i]) by_rows = &table;
    }
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : params_->size();
    if (!open || by_rows != nullptr) {
      buckets_.emplace_back();
      buckets_.back().offset = entries[i].offset;
    }
    Bucket& bucket = buckets_.back();
    bucket_of_[i] = buckets_.size() - 1;
    ++bucket.parameters;
    bucket.size = end - bucket.offset;
    open = by_rows == nullptr && static_cast<double>(bucket.size) * bytes_per_element < room * 1024 * 1024;
    if (by_rows != nullptr) {
      bucket.rows = std::make_unique<RowExchange>(group_, *params_, entries[i], by_rows->size(0),
                                                  by_rows->size(1), averager_->sums_in_place());
    }
    if (!open) room = options_.bucket_mib;
  }
}

void Overlapped::before_backward(Replica& replica, const StepContext& context, bool last_micro) {
  if (!last_micro) return;
  check(params_ == &replica.params, "Overlapped::start was given another replica");
  averager_->begin(context.step);
  started_ = 0;
  trace_ = replica.trace != nullptr && replica.trace->on() ? replica.trace : nullptr;
  for (Bucket& bucket : buckets_) {
    bucket.waiting = bucket.parameters;
    if (bucket.rows) bucket.rows->announce(rows_read(replica, context, bucket.rows->entry()));
  }
  armed_ = options_.overlap;
}

void Overlapped::ready(size_t entry) {
  if (observer_) observer_("ready", params_->entries()[entry].name);
  if (!armed_) return;
  --buckets_[bucket_of_[entry]].waiting;
  while (started_ < buckets_.size() && buckets_[started_].waiting == 0) start_next();
}

void Overlapped::start_next() {
  const comm::Carrying carrying(comm::Payload::kGradients);
  Bucket& bucket = buckets_[started_];
  if (observer_) observer_("start", std::to_string(started_));
  ++started_;
  if (trace_ != nullptr) bucket.begin = trace_->now();
  if (bucket.rows) {
    bucket.rows->start(*averager_);
  } else {
    bucket.pending = averager_->start(piece_of(*params_, bucket.offset, bucket.size));
  }
}

Update Overlapped::step(Replica& replica, const StepContext& context) {
  armed_ = false;
  while (started_ < buckets_.size()) start_next();
  std::vector<tensor::RowUse> in_use;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[i];
    if (bucket.rows) {
      const at::Tensor rows = bucket.rows->finish();
      if (rows.defined()) in_use.push_back({bucket.rows->entry().parameter, rows});
    } else {
      bucket.pending.wait();
    }
    if (trace_ != nullptr) note(i);
  }
  Update update = replica.apply(context);
  if (!params_->sums.defined()) update.touched = std::move(in_use);  // else other ranks' rows are elsewhere
  return update;
}

/// From its start until its sum was here, or was waited for where the transport does not tell.
void Overlapped::note(size_t number) {
  const Bucket& bucket = buckets_[number];
  double end = trace_->now();
  if (const auto ended = comm::take_end())
    end = std::clamp(std::chrono::duration<double>(ended->time_since_epoch()).count(), bucket.begin, end);
  trace_->add(Trace::Event{.lane = Trace::Lane::kExchange,
                           .name = fmt::format("bucket {}{}", number + 1, bucket.rows ? " (rows)" : ""),
                           .begin = bucket.begin,
                           .end = end,
                           .bytes = static_cast<double>(bucket.size * params_->grads.element_size())});
}

}  // namespace syncopate::parallel
