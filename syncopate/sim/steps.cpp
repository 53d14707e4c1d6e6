#include "syncopate/sim/steps.h"

#include <algorithm>

#include "syncopate/sim/steps/strategies.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::sim {
namespace {

std::unique_ptr<StrategySteps> steps_of(const spec::StrategyInfo& strategy, StepParts& parts) {
  using spec::Pattern, spec::Rhythm;
  const bool one_bit_adam = parts.averages.codec().packing == spec::Packing::kSigns &&
                            spec::optimizer_info(parts.what.spec.optim.name).one_bit_adam;
  const bool has_buckets = std::count(strategy.settings.begin(), strategy.settings.end(), "bucket_mib") > 0;
  if (strategy.has_servers) return server_steps(parts);
  if (strategy.rhythm == Rhythm::kLocal) return local_steps(parts);
  if (parts.workers.count() == 1 || strategy.rhythm == Rhythm::kFree || strategy.pattern == Pattern::kNothing)
    return own_steps(parts);
  if (one_bit_adam) return one_bit_steps(parts);
  if (has_buckets) return overlapped_steps(parts);
  return steps_by_tensor(parts, strategy.pattern == Pattern::kGatherScatter);
}

}  // namespace

int64_t period_of(const spec::RunSpec& spec) {
  const bool local = spec::strategy_info(spec.strategy.name).rhythm == spec::Rhythm::kLocal;
  return local ? std::max<int64_t>(1, spec.strategy.every) : 1;
}

void write_steps(Engine& engine, const StepsOf& what, int64_t steps) {
  StepParts parts(engine, what);
  const auto strategy = steps_of(spec::strategy_info(what.spec.strategy.name), parts);
  parts.workers.mark();
  for (int64_t step = 0; step < steps; ++step) {
    parts.passes.begin(step);
    strategy->write(step);
    parts.workers.mark();
  }
}

double kept_bytes(const spec::RunSpec& spec, int64_t elements) {
  const spec::CodecInfo& codec = spec::codec_info(spec.codec.name);
  const bool feeds_back =
      spec.codec.error_feedback == "auto" ? codec.feeds_back : spec.codec.error_feedback == "true";
  double arrays = 0;
  // Of coded sums both the sender and the owner keep what was lost.
  if (feeds_back && spec.replicas() > 1) arrays += codec.packing == spec::Packing::kLowRank ? 1 : 2;
  if (spec.strategy.name == "diloco") arrays += 3;  // the anchor, the momentum, what travels
  if (spec.strategy.name == "local-sgd" && (spec.strategy.delay > 0 || spec.strategy.overlap_average))
    arrays += 2;
  return 4 * arrays * static_cast<double>(elements);
}

}  // namespace syncopate::sim
