#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "syncopate/base/clock.h"
#include "syncopate/parallel/engines/engine_around.h"

namespace syncopate::parallel {

/// A worker of a slower machine, for demonstrations: computes, then sleeps until `factor` times as long has
/// passed.
class SlowEngine : public EngineAround {
 public:
  SlowEngine(std::unique_ptr<Engine> inner, double factor)
      : EngineAround(std::move(inner)), factor_(factor) {}

  Gradients run(Replica& replica, std::span<const tensor::Batch> micro, uint64_t noise_key,
                const EngineEvents& events) override {
    const Stopwatch watch;
    Gradients made = EngineAround::run(replica, micro, noise_key, events);
    std::this_thread::sleep_for(std::chrono::duration<double>((factor_ - 1) * watch.seconds()));
    return made;
  }

 private:
  double factor_;
};

}  // namespace syncopate::parallel
