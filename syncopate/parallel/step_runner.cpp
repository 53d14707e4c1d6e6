#include "syncopate/parallel/step_runner.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"

namespace syncopate::parallel {
namespace {

void require_finite(double value, int64_t step) {
  if (std::isfinite(value)) return;
  throw DivergedError(
      "the loss at step {} is not a number; try a smaller learning rate, a longer warm-up or clipping",
      step + 1);
}

}  // namespace

StepResult StepRunner::step(std::span<const tensor::Batch> micro, const Order& order,
                            const StepHooks& hooks) {
  const bool local = strategy_.updates_locally(order.step);
  StepResult result;
  result.talked = strategy_.exchanges(order.step);
  check(local || result.talked, "a common update needs everybody's count");

  Totals totals(mesh_.world, mesh_.staged());
  StepContext context{.step = order.step, .lr = order.lr, .count = 0};
  EngineEvents events;
  events.phase = hooks.phase;
  events.before_backward = [&](const LocalLoss& so_far, std::span<const tensor::RowUse> rows, bool last) {
    if (last && result.talked) {
      totals.start(so_far, hooks.earlier, hooks.wishes ? hooks.wishes() : Wishes{});
    }
    if (local) context.count = static_cast<double>(so_far.of_replica);
    context.rows = rows;
    strategy_.before_backward(replica_, context, last);
  };
  if (hooks.phase) hooks.phase("forward");
  replica_.params.zero_grads(touched_);
  Gradients gradients = engine_.run(replica_, micro, order.noise_key, events);
  result.mine = gradients.loss;

  if (hooks.phase) hooks.phase("exchange");
  const Trace::Span span(replica_.trace, Trace::Lane::kCompute, "exchange");
  const Stopwatch exchange;
  if (result.talked) {
    totals.wait();
    result.sum = totals.loss().sum;
    result.count = totals.loss().count;
    result.earlier = totals.earlier();
    result.wishes = totals.wishes();
    const auto counts = [](const TotalLoss& loss) { return loss.count > 0; };
    if (result.count == 0 && std::none_of(result.earlier.begin(), result.earlier.end(), counts)) {
      // Every rank sees it.
      throw DataError(
          "step {} has nothing to learn from: no worker has an example that counts; of texts, does the "
          "vocabulary fit the data?",
          order.step + 1);
    }
  } else {
    result.sum = result.mine.sum;
    result.count = static_cast<double>(result.mine.count);
  }
  require_finite(result.sum, order.step);
  context.count = local ? static_cast<double>(result.mine.of_replica) : result.count;
  context.rows = gradients.rows;
  result.update = strategy_.step(replica_, context);
  // Then more than the optimizer may have changed the parameters.
  if (strategy_.traits().replicas_differ) replica_.params.half_fresh = false;
  touched_ = result.update.touched ? std::move(*result.update.touched) : std::move(gradients.rows);
  require_finite(result.update.gradient_norm, order.step);
  result.exchange_seconds = exchange.seconds() - result.update.apply_seconds;
  return result;
}

}  // namespace syncopate::parallel
