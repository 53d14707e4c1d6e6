#include "syncopate/run/records/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/text.h"
#include "syncopate/record/run_folder.h"
#include "syncopate/run/records/stage_records.h"

namespace syncopate::run {

namespace {

/// From the worst worker's own model to the best one's.
std::string spread_of(const std::vector<record::EvalRecord>& evals) {
  const auto [worst, best] = std::minmax_element(
      evals.begin(), evals.end(), [](const auto& a, const auto& b) { return record::better(b, a); });
  const std::string measure = record::main_measure(*best);
  if (measure.empty())
    return fmt::format("workers' own models: test loss {:.4f} to {:.4f}", worst->loss, best->loss);
  const auto text = [&](const record::EvalRecord& eval) {
    return record::measure_for_people(measure, eval.measures.at(measure));
  };
  return fmt::format("workers' own models after step {}: {} {} to {}", best->step, measure, text(*worst),
                     text(*best));
}

}  // namespace

std::vector<std::string> summary_of(const record::RunRecord& record) {
  const char* const unit = record.updates.empty() ? "step" : "update";
  std::vector<std::string> lines;
  lines.push_back(fmt::format("done: {} {}{} in {}", record.steps, unit, record.steps == 1 ? "" : "s",
                              duration_for_people(record.train_seconds)));
  if (record.eval) {
    std::string quality = fmt::format("quality: test loss {:.4f}", record.eval->loss);
    for (const auto& [name, value] : record.eval->measures)
      quality += fmt::format(" · {} {}", name, record::measure_for_people(name, value));
    lines.push_back(quality + fmt::format(" · {} examples", record.eval->examples));
  }
  lines.push_back(
      fmt::format("time: {:.1f} ms per {} (compute {:.1f}, exchange {:.1f}, data {:.1f}) · {:.0f} examples/s",
                  record.ms_per_iteration, unit, record.compute_ms, record.exchange_ms, record.data_ms,
                  record.examples_per_s));
  for (std::string& line : stages_in_words(record.stages)) lines.push_back(std::move(line));
  if (record.predicted) {
    lines.push_back(
        fmt::format("predicted from {}: {:.1f} ms per {} on this network, measured {:.1f} (error {:+.0f} %)",
                    record.predicted->from, record.predicted->ms, unit, record.ms_per_iteration,
                    100 * (record.predicted->ms / record.ms_per_iteration - 1)));
  }
  if (std::isfinite(record.noise_scale)) {
    lines.push_back(fmt::format("noise: gradient noise scale of {:.0f} examples, at {} a step",
                                record.noise_scale, record.global_batch));
  }
  if (!record.worker_evals.empty()) lines.push_back(spread_of(record.worker_evals));
  if (record.workers > 1) {
    lines.push_back(fmt::format("sent: {} per {}{}", bytes_for_people(record.bytes_sent_per_step), unit,
                                record.updates.empty() ? " by each worker" : ""));
  }
  if (record.network && !record.network->trustworthy) {
    lines.push_back(fmt::format(
        "network: not to be trusted: packets were up to {:.1f} ms late (99 of 100) on a machine too busy for "
        "it, or a link was changed",
        record.network->late_ms_p99));
  }
  lines.push_back("model: " + record::RunFolder{record.run_dir}.model().string());
  lines.push_back("evaluate: syncopate evaluate --model " + shell_word(record.run_dir));
  return lines;
}

}  // namespace syncopate::run
