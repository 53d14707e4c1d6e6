// What arms are judged by.
#include <algorithm>
#include <map>

#include "syncopate/report/analysis/comparison.h"

namespace syncopate::report {
namespace {

std::string task_of(const RunData& run) {
  const std::string& task = run.files->setting("task.name");
  return task.empty() && run.files->record ? run.files->record->task : task;
}

/// What the runs of one task were scored by.
struct Scores {
  std::map<std::string, int64_t> names{};
  int64_t count = 0;
  bool tested = false;

  Measure measure() const {
    Measure measure;
    measure.split = tested || count == 0 ? "test" : "validation";
    const auto most = std::max_element(names.begin(), names.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == names.end()) return measure;
    measure.name = most->first.empty() ? "loss" : most->first;
    measure.label = measure.name == "f1" ? "F1" : measure.name;
    std::replace(measure.label.begin(), measure.label.end(), '_', ' ');
    const bool raw = measure.name == "loss" || measure.name == "perplexity";
    measure.higher_is_better = !raw;
    measure.percent = !raw && measure.name != "f1" && measure.name != "exact_match";
    return measure;
  }
};

double score_in(const RunData& run, const Measure& measure) {
  if (!run.done() || measure.name.empty()) return kUnknown;
  const record::RunRecord& record = *run.files->record;
  const auto& eval = measure.split == "test" ? record.eval : record.validation;
  if (!eval) return kUnknown;
  if (measure.name == "loss") return eval->loss;
  const auto found = eval->measures.find(measure.name);
  return found == eval->measures.end() ? kUnknown : found->second;
}

}  // namespace

void choose_measure(Comparison& of) {
  Results& results = of.results;
  std::map<std::string, Scores> tasks;
  std::string first;  // the task with the most scores, of several the first
  for (const auto& runs : of.runs) {
    for (const RunData* run : runs) {
      if (!run->done()) continue;
      const auto& record = *run->files->record;
      const auto& eval = record.eval ? record.eval : record.validation;
      if (!eval) continue;
      const std::string task = task_of(*run);
      Scores& scores = tasks[task];
      scores.tested = scores.tested || record.eval.has_value();
      ++scores.count;
      ++scores.names[record::main_measure(*eval)];
      if (scores.count == 1 && tasks.size() == 1) first = task;
    }
  }
  for (const auto& [task, scores] : tasks) {
    if (scores.count > tasks[first].count) first = task;
  }
  results.measure = tasks.empty() ? Scores().measure() : tasks.at(first).measure();
  for (size_t i = 0; i < of.runs.size(); ++i) {
    ArmResult& arm = results.arms[i];
    arm.measure = results.measure;
    if (const RunData* any = of.any_done(i)) {
      if (const auto own = tasks.find(task_of(*any)); own != tasks.end()) arm.measure = own->second.measure();
    }
    std::vector<double> values;
    for (size_t k = 0; k < of.runs[i].size(); ++k) {
      values.push_back(score_in(*of.runs[i][k], arm.measure));
      results.runs[of.places[i][k]].quality = values.back();
    }
    arm.quality = estimate(std::move(values));
  }
}

}  // namespace syncopate::report
