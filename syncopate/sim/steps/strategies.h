#pragma once

#include <cstdint>
#include <memory>

#include "syncopate/sim/steps/averages.h"
#include "syncopate/sim/steps/passes.h"
#include "syncopate/sim/steps/workers.h"

// The steps of strategies, as the classes of parallel/strategies make them.
namespace syncopate::sim {

/// What steps are written with.
struct StepParts {
  StepParts(Engine& engine, const StepsOf& of)
      : what(of), workers(engine, of), passes(workers, of), averages(workers, of) {}
  StepParts(const StepParts&) = delete;
  StepParts& operator=(const StepParts&) = delete;

  const StepsOf& what;
  Workers workers;
  Passes passes;
  Averages averages;
};

/// Writes one step after the other, each for all workers.
class StrategySteps {
 public:
  virtual ~StrategySteps() = default;
  virtual void write(int64_t step) = 0;
};

// The parts must outlive what is made of them.

/// Nothing is exchanged but what crosses between stages.
std::unique_ptr<StrategySteps> own_steps(StepParts& parts);
/// One tensor after the other, behind the backward pass: all-reduce, or through a root.
std::unique_ptr<StrategySteps> steps_by_tensor(StepParts& parts, bool through_root);
/// Buckets, while the backward pass goes on.
std::unique_ptr<StrategySteps> overlapped_steps(StepParts& parts);
/// 1-bit Adam, behind the backward pass.
std::unique_ptr<StrategySteps> one_bit_steps(StepParts& parts);
/// Local SGD and DiLoCo: parameters, or what became of them, every few steps.
std::unique_ptr<StrategySteps> local_steps(StepParts& parts);
/// A parameter server's, with the threads of the servers.
std::unique_ptr<StrategySteps> server_steps(StepParts& parts);

}  // namespace syncopate::sim
