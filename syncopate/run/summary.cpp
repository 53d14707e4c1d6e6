#include "syncopate/run/summary.h"

#include <fmt/format.h>

#include "syncopate/base/text.h"
#include "syncopate/record/run_folder.h"

namespace syncopate::run {

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
  if (record.workers > 1) {
    lines.push_back(fmt::format("sent: {} per {}{}", bytes_for_people(record.bytes_sent_per_step), unit,
                                record.updates.empty() ? " by each worker" : ""));
  }
  lines.push_back("model: " + record::RunFolder{record.run_dir}.model().string());
  lines.push_back("evaluate: syncopate evaluate --model " + shell_word(record.run_dir));
  return lines;
}

}  // namespace syncopate::run
