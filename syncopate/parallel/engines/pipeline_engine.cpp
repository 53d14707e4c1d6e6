#include "syncopate/parallel/engines/pipeline_engine.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/comm/metering/payload.h"
#include "syncopate/parallel/engines/block_chain.h"

namespace syncopate::parallel {
namespace {

enum PipelineTag : int { kForwardTag = 51, kBackwardTag, kTiedValuesTag, kTiedGradientsTag, kScoredTag };

/// How many messages may be under way before a stage waits for the first of them.
constexpr size_t kSendsUnderWay = 8;

/// Codecs work on the host and on fp32.
at::Tensor for_codec(const at::Tensor& hidden) { return hidden.detach().to(at::kCPU, at::kFloat); }

at::Tensor empty_hidden(const nn::Model& model, const tensor::Batch& batch, int layer) {
  return model.empty_hidden(batch, layer).to(at::kCPU);
}

}  // namespace

PipelineEngine::PipelineEngine(comm::Group& stages, Options options)
    : stages_(stages), options_(std::move(options)) {
  check(stages_.size() > 1, "a pipeline has several stages");
  make_codecs();
  plain_ = make_activation_codec({});
}

void PipelineEngine::make_codecs() {
  const auto make = [&](const char* end, int cut) {
    return make_activation_codec(options_.activation,
                                 {.name = fmt::format("replica{}.cut{}.{}", options_.replica, cut, end),
                                  .run = options_.run,
                                  .seed = mix_key(mix_key(options_.run, options_.replica), cut)});
  };
  const int me = stages_.rank();
  if (!first()) before_ = make("in", me);
  if (!last()) after_ = make("out", me + 1);
}

bool PipelineEngine::keeps_state() const { return options_.activation.codec != "none"; }

void PipelineEngine::save_state(const std::filesystem::path& stem) {
  if (before_) before_->save(stem.string() + ".in");
  if (after_) after_->save(stem.string() + ".out");
}

void PipelineEngine::load_state(const std::filesystem::path& stem) {
  if (before_) before_->load(stem.string() + ".in");
  if (after_) after_->load(stem.string() + ".out");
}

void PipelineEngine::forget_state() {
  before_.reset();  // first: a buffer's file is one's own
  after_.reset();
  make_codecs();
}

StageWork StageWork::operator-(const StageWork& earlier) const {
  return {.forward = forward - earlier.forward,
          .backward = backward - earlier.backward,
          .coding = coding - earlier.coding,
          .waiting_forward = waiting_forward - earlier.waiting_forward,
          .waiting_backward = waiting_backward - earlier.waiting_backward,
          .sending = sending - earlier.sending,
          .forward_bytes = forward_bytes - earlier.forward_bytes,
          .backward_bytes = backward_bytes - earlier.backward_bytes,
          .tied_bytes = tied_bytes - earlier.tied_bytes,
          .steps = steps - earlier.steps};
}

void PipelineEngine::send(const at::Tensor& message, int to, int tag, double& bytes) {
  const comm::Carrying carrying(comm::Payload::kActivations);
  const Stopwatch watch;
  finish_sends(kSendsUnderWay);
  work_.sending += watch.seconds();
  bytes += static_cast<double>(message.nbytes());
  sends_.push_back(stages_.send(message, to, tag));
}

void PipelineEngine::finish_sends(size_t left) {
  for (; sends_.size() > left; sends_.pop_front()) sends_.front().wait();
}

/// One step of one stage.
class PipelineEngine::Step {
 public:
  Step(PipelineEngine& engine, Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
       const EngineEvents& events)
      : engine_(engine),
        replica_(replica),
        noise_key_(noise_key),
        events_(events),
        trace_(replica.trace),
        me_(engine.stages_.rank()) {
    const at::Device device = replica.params.values.device();
    flights_.resize(micro.size());
    for (size_t i = 0; i < micro.size(); ++i) {
      flights_[i].host = &micro[i];
      flights_[i].batch = device.is_cpu() ? micro[i] : micro[i].to(device);
      for (tensor::RowUse& use : replica.model.rows_used(micro[i])) made_.rows.push_back(std::move(use));
      made_.loss.of_replica += replica.model.count(micro[i]);
      // The first is needed at once; the others are read while it is computed.
      for (ActivationCodec* codec : {engine.before_.get(), engine.after_.get()}) {
        if (codec != nullptr && i > 0) codec->prefetch(micro[i].ids);
      }
    }
  }

  Gradients run() {
    if (flights_.empty()) {
      tell_before_backward(true);
      phase("backward");
      return made_;
    }
    start_tied();
    expect();
    const int64_t last_micro = static_cast<int64_t>(flights_.size()) - 1;
    for (const Pass& pass :
         passes_of(engine_.options_.schedule, me_, engine_.stages_.size(), last_micro + 1)) {
      Flight& flight = flights_[static_cast<size_t>(pass.micro)];
      if (!pass.backward) {
        forward(flight);
      } else {
        if (pass.micro == last_micro && engine_.first()) add_tied_gradients();
        tell_before_backward(pass.micro == last_micro);
        backward(flight);
      }
    }
    if (engine_.last()) send_tied_gradients();
    // The optimizer writes into what is being sent.
    const Stopwatch watch;
    for (comm::Pending& each : tied_sends_) each.wait();
    engine_.work_.sending += watch.seconds();
    if (++engine_.work_.steps == 1) engine_.first_step_ = engine_.work_;
    return std::move(made_);
  }

 private:
  using Lane = Trace::Lane;

  /// A micro-batch on its way.
  struct Flight {
    const tensor::Batch* host = nullptr;
    tensor::Batch batch;  ///< where the model is
    std::optional<BlockChain> chain;
    at::ScalarType type = at::kFloat;  ///< of what leaves
    at::Tensor message;                ///< what enters, as it travels
    at::Tensor gradients;              ///< what comes back, as it travels
    comm::Pending entering, returning;
  };

  void phase(const char* name) const {
    if (events_.phase) events_.phase(name);
  }

  void tell_before_backward(bool last) const {
    if (events_.before_backward) events_.before_backward(made_.loss, made_.rows, last);
  }

  /// Both ends know what comes: the earlier it is asked for, the sooner it is sent.
  void expect() {
    for (Flight& flight : flights_) {
      if (!engine_.first()) {
        ActivationCodec& codec = *engine_.before_;
        flight.message = codec.expect(empty_hidden(replica_.model, *flight.host, 0), *flight.host);
        flight.entering = engine_.stages_.receive(flight.message, me_ - 1, kForwardTag);
      }
      if (!engine_.last()) {
        ActivationCodec& codec = *engine_.after_;
        const at::Tensor like = empty_hidden(replica_.model, *flight.host, replica_.model.depth());
        flight.gradients = codec.expect_gradient(like, *flight.host);
        flight.returning = engine_.stages_.receive(flight.gradients, me_ + 1, kBackwardTag);
      }
    }
  }

  void forward(Flight& flight) {
    StageWork& work = engine_.work_;
    phase("forward");
    const at::Device device = replica_.params.values.device();
    at::Tensor entered;
    if (!engine_.first()) {
      Stopwatch watch;
      await(flight.entering, Lane::kForward, me_ - 1, flight.message, micro_of(flight));
      work.waiting_forward += watch.restart();
      const Trace::Span span(trace_, Lane::kCoding, "unpack activations", micro_of(flight));
      ActivationCodec& codec = *engine_.before_;
      const at::Tensor like = empty_hidden(replica_.model, *flight.host, 0);
      entered = codec.unpack(flight.message, like, *flight.host).to(device);
      flight.message.reset();
      work.coding += watch.seconds();
    }
    if (engine_.last()) wait_for_tied();
    Trace::Span span(trace_, Lane::kCompute, "forward", micro_of(flight));
    Stopwatch watch;
    flight.chain.emplace(replica_.model,
                         ChainOptions{.mode = {.training = true, .noise_key = noise_key_},
                                      .precision = replica_.precision,
                                      .device = device,
                                      .recompute = engine_.options_.recompute},
                         std::move(entered), flight.batch, nn::LayerRange{0, replica_.model.depth()});
    if (engine_.last()) {
      const tensor::Loss loss = flight.chain->loss();
      made_.loss.sum += loss.sum.item<double>();
      made_.loss.count += loss.count;
    }
    const at::Tensor output = flight.chain->take_output();
    work.forward += watch.restart();
    span.end();
    if (engine_.last()) return;
    flight.type = output.scalar_type();
    Trace::Span packing(trace_, Lane::kCoding, "pack activations", micro_of(flight));
    ActivationCodec& codec = *engine_.after_;
    const at::Tensor message = codec.pack(for_codec(output), *flight.host);
    work.coding += watch.seconds();
    packing.end();
    send(message, me_ + 1, Lane::kForward, micro_of(flight));
  }

  void backward(Flight& flight) {
    StageWork& work = engine_.work_;
    phase("backward");
    at::Tensor gradient;
    if (!engine_.last()) {
      Stopwatch watch;
      await(flight.returning, Lane::kBackward, me_ + 1, flight.gradients, micro_of(flight));
      work.waiting_backward += watch.restart();
      const Trace::Span span(trace_, Lane::kCoding, "unpack gradients", micro_of(flight));
      ActivationCodec& codec = *engine_.after_;
      const at::Tensor like = empty_hidden(replica_.model, *flight.host, replica_.model.depth());
      gradient = codec.unpack_gradient(flight.gradients, like, *flight.host)
                     .to(replica_.params.values.device(), flight.type);
      work.coding += watch.seconds();
    }
    Trace::Span span(trace_, Lane::kCompute, "backward", micro_of(flight));
    Stopwatch watch;
    const at::Tensor left = engine_.last()
                                ? flight.chain->backward_from_loss(
                                      replica_.loss_scale != nullptr ? replica_.loss_scale->value() : 1)
                                : flight.chain->backward(gradient);
    work.backward += watch.restart();
    span.end();
    if (!engine_.first()) {
      Trace::Span packing(trace_, Lane::kCoding, "pack gradients", micro_of(flight));
      ActivationCodec& codec = *engine_.before_;
      const at::Tensor message = codec.pack_gradient(for_codec(left), *flight.host);
      work.coding += watch.seconds();
      packing.end();
      send(message, me_ - 1, Lane::kBackward, micro_of(flight));
    }
    flight.chain.reset();
    flight.gradients.reset();
  }

  int64_t micro_of(const Flight& flight) const { return &flight - flights_.data(); }

  /// Until what `from` sent is here.
  void await(comm::Pending& pending, Lane lane, int from, const at::Tensor& message, int64_t micro) const {
    if (trace_ == nullptr || !trace_->on()) return pending.wait();
    const double begin = trace_->now();
    pending.wait();
    const double end = trace_->now();
    trace_->add(Trace::Event{.name = lane == Lane::kForward ? "wait for activations" : "wait for gradients",
                             .begin = begin,
                             .end = end,
                             .micro = micro});
    trace_->add(Trace::Message{.lane = lane,
                               .peer = from,
                               .micro = micro,
                               .begin = begin,
                               .end = end,
                               .bytes = static_cast<double>(message.nbytes())});
  }

  void send(const at::Tensor& message, int to, Lane lane, int64_t micro) {
    StageWork& work = engine_.work_;
    const bool forwards = lane == Lane::kForward;
    const double begin = trace_ != nullptr ? trace_->now() : 0;
    engine_.send(message, to, forwards ? kForwardTag : kBackwardTag,
                 forwards ? work.forward_bytes : work.backward_bytes);
    if (trace_ == nullptr || !trace_->on()) return;
    trace_->add(Trace::Message{.lane = lane,
                               .sent = true,
                               .peer = to,
                               .micro = micro,
                               .begin = begin,
                               .end = trace_->now(),
                               .bytes = static_cast<double>(message.nbytes())});
  }

  /// The last stage computes with the first stage's tables as they are now.
  void start_tied() {
    const comm::Carrying carrying(comm::Payload::kParameters);
    const at::NoGradGuard no_grad;
    const int last = engine_.stages_.size() - 1;
    for (const at::Tensor& table : engine_.options_.tied) {
      if (engine_.first()) {
        tied_sends_.push_back(engine_.stages_.send(table.detach(), last, kTiedValuesTag));
        engine_.work_.tied_bytes += static_cast<double>(table.nbytes());
        tied_gradients_.push_back(at::empty_like(table.detach()));
        tied_receives_.push_back(engine_.stages_.receive(tied_gradients_.back(), last, kTiedGradientsTag));
      } else {
        tied_receives_.push_back(engine_.stages_.receive(table.detach(), 0, kTiedValuesTag));
        if (table.grad().defined()) table.grad().zero_();
      }
    }
  }

  void wait_for_tied() {
    if (tied_receives_.empty()) return;
    const Trace::Span span(trace_, Lane::kCompute, "wait for tied tables");
    Stopwatch watch;
    for (comm::Pending& each : tied_receives_) each.wait();
    tied_receives_.clear();
    engine_.work_.waiting_forward += watch.seconds();
  }

  void send_tied_gradients() {
    const comm::Carrying carrying(comm::Payload::kGradients);
    for (const at::Tensor& table : engine_.options_.tied) {
      if (!table.grad().defined()) table.mutable_grad() = at::zeros_like(table.detach());
      tied_sends_.push_back(engine_.stages_.send(table.grad(), 0, kTiedGradientsTag));
      engine_.work_.tied_bytes += static_cast<double>(table.nbytes());
    }
  }

  /// Before the first stage's last backward pass, in which exchanges with other replicas begin. The last
  /// stage has made all of its own by then.
  void add_tied_gradients() {
    if (tied_gradients_.empty()) return;
    const Trace::Span span(trace_, Lane::kCompute, "wait for tied gradients");
    const at::NoGradGuard no_grad;
    Stopwatch watch;
    for (size_t i = 0; i < tied_gradients_.size(); ++i) {
      tied_receives_[i].wait();
      engine_.work_.waiting_backward += watch.restart();
      engine_.options_.tied[i].mutable_grad().add_(tied_gradients_[i]);
    }
  }

  PipelineEngine& engine_;
  Replica& replica_;
  uint64_t noise_key_;
  const EngineEvents& events_;
  Trace* trace_;
  int me_;
  std::vector<Flight> flights_;
  Gradients made_;
  std::vector<at::Tensor> tied_gradients_;
  std::vector<comm::Pending> tied_sends_, tied_receives_;
};

Gradients PipelineEngine::run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                              const EngineEvents& events) {
  return Step(*this, replica, micro, noise_key, events).run();
}

void PipelineEngine::infer(nn::Model& model, tensor::Precision precision, int64_t batches,
                           const MakeBatch& batch, const UseOutput& use) {
  const at::NoGradGuard no_grad;
  const int me = stages_.rank(), behind = stages_.size() - 1;
  {
    const comm::Carrying carrying(comm::Payload::kParameters);
    for (const at::Tensor& table : options_.tied) {
      if (first()) stages_.send(table.detach(), behind, kTiedValuesTag).wait();
      if (last()) stages_.receive(table.detach(), 0, kTiedValuesTag).wait();
    }
  }
  model.set_mode({.training = false});
  const at::Device device = model.parameters().front().tensor.device();
  /// Asked for ahead, so that it travels while others are computed.
  struct Entering {
    tensor::Batch host, batch;
    at::Tensor like, message;
    comm::Pending pending;
  };
  const ActivationCodec& from = options_.coded_evaluations && before_ ? *before_ : *plain_;
  const ActivationCodec& to = options_.coded_evaluations && after_ ? *after_ : *plain_;
  const StageWork before = work_;  // is about training steps
  constexpr int64_t kAhead = 4;
  std::deque<Entering> entering;
  int64_t asked = 0;
  for (int64_t number = 0; number < batches; ++number) {
    for (; asked < std::min(batches, number + kAhead); ++asked) {
      Entering& next = entering.emplace_back();
      next.host = batch(asked);
      next.batch = next.host.to(device);
      if (first()) continue;
      next.like = empty_hidden(model, next.host, 0);
      next.message = from.expect_once(next.like, next.host);
      next.pending = stages_.receive(next.message, me - 1, kScoredTag);
    }
    Entering now = std::move(entering.front());
    entering.pop_front();
    at::Tensor hidden;
    if (!first()) {
      now.pending.wait();
      hidden = from.unpack_once(now.message, now.like, now.host).to(device);
    }
    const tensor::Autocast autocast(precision, device);
    const at::Tensor output = model.forward(hidden, now.batch, {0, model.depth()});
    if (last()) {
      use(output, now.batch);
    } else {
      send(to.pack_once(for_codec(output), now.host), me + 1, kScoredTag, work_.forward_bytes);
    }
  }
  finish_sends(0);
  work_ = before;
}

}  // namespace syncopate::parallel
