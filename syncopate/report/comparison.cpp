#include "syncopate/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/base/text.h"
#include "syncopate/report/table.h"

namespace syncopate::report {
namespace {

const std::string& called(const ComparedRun& run) { return run.name.empty() ? run.strategy : run.name; }

}  // namespace

std::string comparison_table(const std::vector<ComparedRun>& runs) {
  double single_speed = 0;
  std::string measure = "accuracy";
  for (const ComparedRun& run : runs) {
    if (!run.record) continue;
    if (run.strategy == "single" && single_speed == 0) single_speed = run.record->examples_per_s;
    if (run.record->eval && !run.record->eval->measures.empty()) measure = main_measure(*run.record->eval);
  }
  const bool named = std::any_of(runs.begin(), runs.end(), [](const auto& run) { return !run.name.empty(); });
  Table table({named ? "row" : "strategy", "workers", "ms/iteration", "compute", "exchange", "examples/s",
               "speed-up", "sent/worker/step", "final loss", measure});
  for (const ComparedRun& run : runs) {
    if (!run.record) {
      table.add({called(run), std::to_string(run.workers), "diverged", "", "", "", "", "", "", ""});
      continue;
    }
    const record::RunRecord& r = *run.record;
    const auto score =
        r.eval ? r.eval->measures.find(measure) : std::map<std::string, double>::const_iterator{};
    const bool scored = r.eval && score != r.eval->measures.end();
    table.add({called(run), std::to_string(run.workers), fmt::format("{:.1f}", r.ms_per_iteration),
               fmt::format("{:.1f}", r.compute_ms), fmt::format("{:.1f}", r.exchange_ms),
               fmt::format("{:.0f}", r.examples_per_s),
               single_speed > 0 ? fmt::format("{:.2f}x", r.examples_per_s / single_speed) : "–",
               bytes_for_people(r.bytes_sent_per_step), fmt::format("{:.4f}", r.train_loss),
               scored ? record::measure_for_people(measure, score->second) : "–"});
  }
  return table.text();
}

}  // namespace syncopate::report
