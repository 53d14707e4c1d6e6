#include "syncopate/train/timed_step.h"

#include <cmath>
#include <string_view>

#include "syncopate/base/clock.h"
#include "syncopate/base/rng.h"
#include "syncopate/optim/clip.h"

namespace syncopate::train {
namespace {

/// What a step's seconds are spent on, by the phases that it tells of. Waiting for other ranks inside of a
/// phase (synchronised batch norms do) is exchange, not compute.
class PhaseClock {
 public:
  explicit PhaseClock(const comm::Metered& meter) : meter_(meter), waited_(meter.waited()) {}

  void enter(std::string_view phase) {
    leave();
    current_ = phase == "data"       ? &data
               : phase == "forward"  ? &forward
               : phase == "backward" ? &backward
                                     : &exchange;
  }
  void leave() {
    const double waited = meter_.waited(), seconds = watch_.restart(), blocked = waited - waited_;
    waited_ = waited;
    *current_ += seconds - blocked;
    exchange += blocked;
  }

  double data = 0, forward = 0, backward = 0;
  double exchange = 0;  ///< with what the strategy computes then

 private:
  const comm::Metered& meter_;
  Stopwatch watch_;
  double waited_;
  double* current_ = &data;
};

class TracedStep {
 public:
  TracedStep(parallel::Trace* trace, int64_t step) : trace_(trace) {
    if (trace_ != nullptr) trace_->begin_step(step);
  }
  ~TracedStep() {
    if (trace_ != nullptr) trace_->end_step();
  }
  TracedStep(const TracedStep&) = delete;
  TracedStep& operator=(const TracedStep&) = delete;

 private:
  parallel::Trace* trace_;
};

}  // namespace

double mean_of(const parallel::TotalLoss& loss) {
  return loss.count > 0 ? loss.sum / loss.count : std::nan("");
}

double TimedStep::Done::own_loss() const {
  return mean_of({result.mine.sum, static_cast<double>(result.mine.count)});
}

TimedStep::TimedStep(const LoopParts& parts, const LoopOptions& options)
    : parts_(parts), options_(options), runner_(parts.replica, parts.engine, parts.strategy, parts.mesh) {}

TimedStep::Done TimedStep::make(const Request& request) {
  const Stopwatch watch;
  const comm::Meter before = parts_.meter.meter();
  PhaseClock clock(parts_.meter);
  const auto phase = [&](const char* name) {
    clock.enter(name);
    parts_.listener.phase(request.step + 1, name);
  };
  const TracedStep traced(parts_.replica.trace, request.step + 1);
  phase("data");
  parallel::Trace::Span loading(parts_.replica.trace, parallel::Trace::Lane::kCompute, "data");
  const data::StepBatches batches = parts_.loader.next();
  loading.end();
  clock.leave();
  const double data_seconds = clock.data;
  comm::Group& replicas = parts_.mesh.replicas;
  if (options_.broadcast_buffers && replicas.size() > 1) {
    const comm::Carrying carrying(comm::Payload::kParameters);
    for (const auto& [name, buffer] : parts_.replica.model.buffers()) replicas.broadcast(buffer, 0).wait();
  }
  Done done;
  done.epoch = batches.epoch;
  done.last_of_epoch = batches.last_of_epoch;
  for (const tensor::Batch& batch : batches.micro) done.own_examples += batch.size();
  done.own_load = batches.load;
  const double lr =
      parts_.schedule.lr(request.step / options_.updates_per_step) * parts_.control.rate_factor();
  const optim::LossScale* const scale = parts_.replica.loss_scale;
  const double loss_scale = scale != nullptr ? scale->value() : 1;  // which the step may change
  done.result = runner_.step(batches.micro,
                             {.step = request.step,
                              .lr = lr,
                              .noise_key = mix_key(options_.seed, static_cast<uint64_t>(request.step))},
                             {.phase = phase,
                              .wishes = [&] { return parts_.wishes(request.heeds_clock); },
                              .earlier = request.earlier});
  clock.leave();
  if (options_.noise_scale != nullptr) measure_noise(done, loss_scale, batches.global_examples);
  const double seconds = watch.seconds();
  done.sent = parts_.meter.meter() - before;
  const comm::Count sent = done.sent.total();
  done.compute_seconds = seconds - data_seconds - sent.seconds;
  record::StepRecord& record = done.record;
  record.step = request.step + 1;
  record.loss = mean_of({done.result.sum, done.result.count});
  record.lr = lr;
  record.examples = batches.global_examples;
  record.ms = 1e3 * seconds;
  record.exchange_ms = 1e3 * (clock.exchange - done.result.update.apply_seconds);
  record.hidden_ms = 1e3 * done.sent.hidden;
  record.data_ms = 1e3 * data_seconds;
  record.compute_ms = record.ms - record.exchange_ms - record.data_ms;
  // A device computes behind our back: to know where its time goes, every step would have to wait for it.
  if (parts_.replica.params.values.is_cpu()) {
    record.forward_ms = 1e3 * clock.forward;
    record.backward_ms = 1e3 * clock.backward;
    record.optimizer_ms = 1e3 * done.result.update.apply_seconds;
  }
  record.bytes_sent = static_cast<double>(sent.bytes);
  record.grad_norm = done.result.update.gradient_norm;
  return done;
}

void TimedStep::measure_noise(const Done& done, double loss_scale, int64_t all_examples) {
  parallel::NoiseScale& noise = *options_.noise_scale;
  const parallel::StepResult& result = done.result;
  if (!noise.measures() || result.update.skipped || result.mine.count == 0) return;
  // Gradients are sums over what the loss counts (examples, words): the mean's is what noise is told of.
  const double own = loss_scale * static_cast<double>(result.mine.count);
  const double known = result.update.gradient_norm;  // of the mean over all; 0 where nobody needed it
  const double norm =
      known > 0 ? known
                : optim::gradient_norm(parts_.replica.params.summed(), 1 / (loss_scale * result.count));
  noise.add(noise.own_squares() / (own * own), static_cast<double>(done.own_examples), norm * norm,
            static_cast<double>(all_examples));
}

}  // namespace syncopate::train
