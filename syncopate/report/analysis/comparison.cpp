#include "syncopate/report/analysis/comparison.h"

#include <algorithm>
#include <cmath>

namespace syncopate::report {

const RunData* Comparison::done_run(size_t arm, int64_t seed) const {
  for (const RunData* run : runs[arm]) {
    if (run->done() && run->seed == seed) return run;
  }
  return nullptr;
}

const RunData* Comparison::any_done(size_t arm) const {
  for (const RunData* run : runs[arm]) {
    if (run->done()) return run;
  }
  return nullptr;
}

bool Comparison::differs_allowed(std::string_view check) const {
  return std::find(sweep.differs.begin(), sweep.differs.end(), check) != sweep.differs.end();
}

size_t Comparison::control_of(size_t arm) const {
  const RunData* ours = any_done(arm);
  if (ours == nullptr) return kNone;
  const record::RunRecord& record = *ours->files->record;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const RunData* run : runs[i]) {
      if (run->kind != "control" || run->control_of != results.arms[arm].id || !run->done()) continue;
      const record::RunRecord& control = *run->files->record;
      if (nearly_equal(batch_of(control), batch_of(record)) &&
          nearly_equal(static_cast<double>(control.steps), static_cast<double>(record.steps)))
        return i;
    }
  }
  return kNone;
}

double batch_of(const record::RunRecord& record) {
  if (record.global_batch > 0) return static_cast<double>(record.global_batch);
  return record.steps > 0 ? static_cast<double>(record.examples) / static_cast<double>(record.steps) : 0;
}

bool nearly_equal(double a, double b) { return std::abs(a - b) <= 0.02 * std::max(a, b); }

}  // namespace syncopate::report
