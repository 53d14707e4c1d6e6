#include "syncopate/parallel/replica.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "syncopate/base/clock.h"
#include "syncopate/comm/direct_sum.h"
#include "syncopate/gpu/update.h"
#include "syncopate/optim/clip.h"
#include "syncopate/parallel/shared_update.h"

namespace syncopate::parallel {
namespace {

constexpr int kNormTag = 62;

}  // namespace

double Replica::whole_norm(double mine) const {
  if (stages == nullptr) return mine;
  const Trace::Span span(trace, Trace::Lane::kCompute, "wait for the norm");
  const at::Tensor squares = at::full({1}, mine * mine, at::kDouble);
  comm::sum_directly(*stages, squares, kNormTag).wait();
  return std::sqrt(squares.item<double>());
}

double Replica::mean_scale(double count) const {
  return loss_scale != nullptr ? 1 / count / loss_scale->value() : 1 / count;
}

Update Replica::judge(double norm) const {
  const bool finite = std::isfinite(norm);
  if (loss_scale != nullptr) {
    if (finite) {
      loss_scale->succeeded();
    } else if (loss_scale->value() > 1) {
      loss_scale->overflowed();
      norm = 0;
    }
  }
  return {.gradient_norm = norm, .skipped = !finite};  // a norm that is not finite: the run diverged
}

Replica::Scaled Replica::scaled(double count) const {
  if (count == 0) return {.update = {.skipped = true}, .scale = std::nullopt};  // nothing to learn from
  const double scale = mean_scale(count);
  const bool need_norm = clip > 0 || loss_scale != nullptr;
  double norm = 0, waited = 0;
  if (need_norm) {
    const SharedUpdate::Norm mine =
        shared ? shared->norm(*this, scale)
               : SharedUpdate::Norm{.value = optim::gradient_norm(params.grads, scale)};
    const Stopwatch watch;
    norm = whole_norm(mine.value);
    waited = mine.waited + watch.seconds();
  }
  const Update update = judge(norm);
  if (update.skipped) return {.update = update, .scale = std::nullopt, .waited = waited};
  return {
      .update = update, .scale = scale * optim::clip_factor(update.gradient_norm, clip), .waited = waited};
}

void Replica::refresh_half() const {
  if (!params.half.defined() || std::exchange(params.half_fresh, false)) return;
  gpu::refresh_half(params);
}

Update Replica::apply(const StepContext& context) const {
  const Trace::Span span(trace, Trace::Lane::kCompute, "update");
  const Stopwatch watch;
  if (context.count > 0 && loss_scale == nullptr && stages == nullptr) {
    // On a device nobody waits for the norm before the update: the device clips by itself.
    if (const auto norm = optimizer.step_clipped(params, context.lr, mean_scale(context.count), clip)) {
      Update update = judge(*norm);
      update.apply_seconds = watch.seconds();
      return update;
    }
  }
  auto [update, scale, waited] = scaled(context.count);
  if (scale && shared) {
    waited += shared->step(*this, context.lr, *scale);
  } else if (scale) {
    optimizer.step(params, context.lr, *scale);
  }
  update.apply_seconds = watch.seconds() - waited;
  return update;
}

}  // namespace syncopate::parallel
