#include "syncopate/sim/steps/strategies.h"

namespace syncopate::sim {
namespace {

class OwnSteps : public StrategySteps {
 public:
  explicit OwnSteps(StepParts& parts) : parts_(parts) {}

  void write(int64_t) override {
    const bool staged = parts_.what.crossings != nullptr;
    parts_.passes.forward();
    const int sums = staged ? parts_.passes.totals() : -1;
    parts_.passes.end_backward();
    if (staged) parts_.workers.wait(sums);
    parts_.passes.finish();
  }

 private:
  StepParts& parts_;
};

}  // namespace

std::unique_ptr<StrategySteps> own_steps(StepParts& parts) { return std::make_unique<OwnSteps>(parts); }

}  // namespace syncopate::sim
