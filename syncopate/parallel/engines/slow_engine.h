#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "syncopate/base/clock.h"
#include "syncopate/parallel/engine.h"

namespace syncopate::parallel {

/// A worker of a slower machine, for demonstrations: computes, then sleeps until `factor` times as long has
/// passed.
class SlowEngine : public Engine {
 public:
  SlowEngine(std::unique_ptr<Engine> inner, double factor) : inner_(std::move(inner)), factor_(factor) {}

  Gradients run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                const EngineEvents& events) override {
    const Stopwatch watch;
    Gradients made = inner_->run(replica, micro, noise_key, events);
    std::this_thread::sleep_for(std::chrono::duration<double>((factor_ - 1) * watch.seconds()));
    return made;
  }
  void infer(nn::Model& model, tensor::Precision precision, int64_t batches, const MakeBatch& batch,
             const UseOutput& use) override {
    inner_->infer(model, precision, batches, batch, use);
  }
  void code_inferences(bool coded) override { inner_->code_inferences(coded); }
  bool keeps_state() const override { return inner_->keeps_state(); }
  void save_state(const std::filesystem::path& stem) override { inner_->save_state(stem); }
  void load_state(const std::filesystem::path& stem) override { inner_->load_state(stem); }
  void forget_state() override { inner_->forget_state(); }

 private:
  std::unique_ptr<Engine> inner_;
  double factor_;
};

}  // namespace syncopate::parallel
