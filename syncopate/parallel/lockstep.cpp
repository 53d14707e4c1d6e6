#include "syncopate/parallel/lockstep.h"

#include <cmath>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/parallel/totals.h"

namespace syncopate::parallel {
namespace {

void require_finite(double value, int64_t step) {
  if (std::isfinite(value)) return;
  throw DivergedError(
      "the loss at step {} is not a number; try a smaller --lr, a longer --warmup or --clip 1", step + 1);
}

}  // namespace

Lockstep::Outcome Lockstep::step(std::span<const tensor::Batch> micro, uint64_t noise_key,
                                 const StepHooks& hooks) {
  const int64_t step = replica_.step;
  const bool local = strategy_.updates_locally(step);
  Outcome outcome;
  outcome.talked = hooks.talk || strategy_.exchanges(step);
  check(local || (outcome.talked && carried_.count == 0), "a common update needs everybody's count");

  Totals totals(group_);
  EngineEvents events;
  events.phase = hooks.phase;
  events.before_backward = [&](const LocalLoss& so_far, bool last) {
    if (last && outcome.talked) {
      totals.start({carried_.sum + so_far.sum, carried_.count + so_far.count}, hooks.stop && hooks.stop(),
                   hooks.time_is_up && hooks.time_is_up());
    }
    if (local) replica_.count = static_cast<double>(so_far.count);
    strategy_.before_backward(replica_, last);
  };
  outcome.mine = engine_.run(replica_, micro, noise_key, events);

  if (hooks.phase) hooks.phase("exchange");
  const Stopwatch exchange;
  const double apply_before = replica_.apply_seconds;
  if (outcome.talked) {
    totals.wait();
    outcome.sum = totals.loss_sum();
    outcome.count = totals.count();
    outcome.stop = totals.stop();
    outcome.time_is_up = totals.time_is_up();
    carried_ = {};
    if (outcome.count == 0) {  // every rank sees it
      throw DataError(
          "step {} has nothing to learn from: no word of its texts is known; does the vocabulary fit the "
          "data?",
          step + 1);
    }
  } else {
    outcome.sum = outcome.mine.sum;
    outcome.count = static_cast<double>(outcome.mine.count);
    carried_.sum += outcome.mine.sum;
    carried_.count += outcome.mine.count;
  }
  require_finite(outcome.sum, step);
  replica_.count = local ? static_cast<double>(outcome.mine.count) : outcome.count;
  strategy_.step(replica_);
  require_finite(replica_.gradient_norm, step);
  outcome.exchange_seconds = exchange.seconds() - (replica_.apply_seconds - apply_before);
  return outcome;
}

}  // namespace syncopate::parallel
