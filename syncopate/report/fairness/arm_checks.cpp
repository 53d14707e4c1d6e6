#include "syncopate/report/fairness/arm_checks.h"

namespace syncopate::report {

ArmChecks::ArmChecks(Comparison& of, size_t arm) : of_(of), index_(arm), arm_(of.results.arms[arm]) {
  arm_.checks.clear();
  arm_.flags.clear();
  arm_.excluded = false;
  const size_t base = of.quality_base[arm] == Comparison::kNone ? arm : of.quality_base[arm];
  base_name_ = of.results.arms[base].name;
  alone_ = base == arm;
  for (const RunData* run : of.runs[arm]) {
    if (!run->done()) continue;
    const RunData* twin = alone_ ? nullptr : of.done_run(base, run->seed);
    const RunData* other = twin != nullptr ? twin : of.any_done(base);
    if (other != nullptr) pairs_.push_back({run, other, twin != nullptr});
  }
}

void ArmChecks::add(const char* code, bool ok, std::string text, bool by_nature, bool known) {
  if (!ok && of_.differs_allowed(code)) {
    ok = true;
    text += "; the experiment says that this may differ";
  }
  arm_.checks.push_back({code, ok, std::move(text), by_nature, known});
}

void ArmChecks::conclude() {
  arm_.excluded =
      std::any_of(arm_.checks.begin(), arm_.checks.end(), [](const Check& check) { return !check.ok; });
}

}  // namespace syncopate::report
