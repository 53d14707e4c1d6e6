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
    // What is written down at an evaluation or in a checkpoint must count every rank's examples.
    const auto accounts = [&](bool last_of_epoch) {
      const auto due = [&](int64_t every) { return every > 0 ? (step + 1) % every == 0 : last_of_epoch; };
      return last_of_epoch || step + 1 == options_.steps || due(options_.eval_every) ||
             due(options_.save_every);
    };
    TimedStep::Done done = steps_.make({.step = step, .accounts = accounts});
    if (options_.balance != nullptr) {
      const comm::Meter before = parts_.meter.meter();
      balance(done, step + 1);
      done.record.bytes_sent += static_cast<double>((parts_.meter.meter() - before).total().bytes);
    }
    parts_.listener.step(done.record, done.own_loss());
    Advance progress{.done = step + 1,
                     .interrupted = done.result.stop,
                     .time_is_up = done.result.time_is_up,
                     .epoch_ended = done.last_of_epoch,
                     .epoch = done.epoch,
                     .seconds = done.record.ms / 1e3,
                     .bytes_sent = done.record.bytes_sent};
    if (done.result.talked) {
      progress.loss = done.result.sum;
      progress.count = done.result.count;
    }
    return progress;
  }

 private:
  void balance(const TimedStep::Done& done, int64_t steps_done) {
    options_.balance->measure(done.own_examples, done.compute_seconds);
    if (!options_.balance->adjust(steps_done)) return;
    parts_.loader.set_shares(options_.balance->shares());
    parts_.listener.shares(steps_done, options_.balance->shares());
  }

  LoopParts parts_;
  LoopOptions options_;
  TimedStep steps_;
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
