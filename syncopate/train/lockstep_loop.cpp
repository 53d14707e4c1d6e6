#include <cmath>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/train/loop.h"
#include "syncopate/train/timed_step.h"

namespace syncopate::train {
namespace {

class LockstepLoop : public Loop {
 public:
  LockstepLoop(const LoopParts& parts, const LoopOptions& options)
      : parts_(parts), options_(options), steps_(parts, options) {}

  Advance advance(int64_t step) override {
    if (const parallel::Wishes called = halt(step); called.any()) {
      return {.done = step, .wishes = called, .epoch = step / parts_.loader.steps_per_epoch()};
    }
    hand_over();  // nothing can be added to them any more
    TimedStep::Done done = steps_.make({.step = step, .earlier = untold_, .heeds_clock = !halts()});
    if (options_.balance != nullptr) {
      const comm::Meter before = parts_.meter.meter();
      balance(done, step + 1);
      const comm::Meter balancing = parts_.meter.meter() - before;
      done.sent += balancing;
      done.record.bytes_sent += static_cast<double>(balancing.total().bytes);
    }
    Advance progress{.done = step + 1,
                     .wishes = done.result.wishes,
                     .epoch_ended = done.last_of_epoch,
                     .epoch = done.epoch,
                     .seconds = done.record.ms / 1e3,
                     .sent = done.sent};
    if (done.result.talked) {
      told(done.result.earlier, progress);
      progress.loss += done.result.sum;
      progress.count += done.result.count;
    } else {
      done.record.loss = std::nan("");
      untold_.push_back(done.result.mine);
    }
    rows_.push_back(done.record);
    parts_.listener.update(done.record, done.own_loss());
    return progress;
  }

  Advance bring_together() override {
    Advance added;
    if (rows_.empty()) return added;  // so on every rank
    const Stopwatch watch;
    const comm::Meter before = parts_.meter.meter();
    // Else an evaluation or a checkpoint would end what is in flight, and its bytes would not be counted.
    parts_.strategy.wait_for_exchanges();
    if (!untold_.empty()) {
      parallel::Totals totals(parts_.mesh.world, parts_.mesh.staged());
      totals.start({}, untold_, parts_.wishes(!halts()));
      totals.wait();
      added.wishes = totals.wishes();
      told(totals.earlier(), added);
    }
    added.seconds = watch.seconds();
    added.sent = parts_.meter.meter() - before;
    record::StepRecord& last = rows_.back();
    last.ms += 1e3 * added.seconds;
    last.exchange_ms += 1e3 * added.seconds;
    last.hidden_ms += 1e3 * added.sent.hidden;
    last.bytes_sent += static_cast<double>(added.sent.total().bytes);
    hand_over();
    return added;
  }

 private:
  /// Elsewhere wishes travel with every step.
  bool halts() const {
    return parts_.strategy.traits().replicas_differ &&
           (parts_.mesh.world.size() == 1 || parts_.listener.can_halt());
  }

  /// Where ranks do not talk in every step, what is wished is not left until they do: they halt before the
  /// same step. Nothing: make the step.
  parallel::Wishes halt(int64_t step) {
    if (!halts()) return {};
    comm::Group& world = parts_.mesh.world;
    const parallel::Wishes mine = parts_.wishes(world.rank() == 0);  // clocks differ: one decides
    return world.size() == 1 ? mine : parts_.listener.halt(step, mine);
  }

  /// The untold losses are known now: over all ranks, in order.
  void told(const std::vector<parallel::TotalLoss>& losses, Advance& progress) {
    auto row = rows_.end() - static_cast<std::ptrdiff_t>(losses.size());
    for (const parallel::TotalLoss& loss : losses) {
      (row++)->loss = mean_of(loss);
      progress.loss += loss.sum;
      progress.count += loss.count;
    }
    untold_.clear();
  }

  /// To the listener, if the losses are known: a row is written late rather than twice.
  void hand_over() {
    if (rows_.empty() || !untold_.empty()) return;
    parts_.listener.updates(rows_);
    rows_.clear();
  }

  void balance(const TimedStep::Done& done, int64_t steps_done) {
    options_.balance->measure(done.own_load, done.compute_seconds);
    if (!options_.balance->adjust(steps_done)) return;
    parts_.loader.set_shares(options_.balance->shares());
    parts_.listener.shares(steps_done, options_.balance->shares());
  }

  LoopParts parts_;
  LoopOptions options_;
  TimedStep steps_;
  std::vector<record::StepRecord> rows_;     ///< not yet the listener's; the last steps, in order
  std::vector<parallel::LocalLoss> untold_;  ///< this rank's, of the last of them
};

}  // namespace

const std::vector<int64_t>& Loop::updates() const {
  static const std::vector<int64_t> kNone;
  return kNone;
}

std::unique_ptr<Loop> lockstep_loop(const LoopParts& parts, const LoopOptions& options) {
  check(dynamic_cast<parallel::FreeRunning*>(&parts.strategy) == nullptr,
        "free workers have a loop of their own");
  return std::make_unique<LockstepLoop>(parts, options);
}

}  // namespace syncopate::train
