#include "syncopate/lab/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "syncopate/base/text.h"

namespace syncopate::lab {
namespace {

double between(double a, double b) {
  const double middle = a > 0 && b > 0 ? std::sqrt(a * b) : (a + b) / 2;
  return parse_number(fmt::format("{:.3g}", middle)).value_or(middle);
}

}  // namespace

std::optional<double> Trial::mean() const {
  double sum = 0;
  for (const auto& score : scores) {
    if (!score || !std::isfinite(*score)) return std::nullopt;
    sum += *score;
  }
  if (scores.empty()) return std::nullopt;
  return sum / static_cast<double>(scores.size());
}

double Trial::mean_loss() const {
  return std::accumulate(losses.begin(), losses.end(), 0.0) /
         static_cast<double>(std::max<size_t>(1, losses.size()));
}

Trial& Tuning::at(double value) {
  const auto place = std::lower_bound(trials.begin(), trials.end(), value,
                                      [](const Trial& trial, double wanted) { return trial.value < wanted; });
  if (place != trials.end() && place->value == value) return *place;
  return *trials.insert(place, {.value = value});
}

void Tuning::choose() {
  best.reset();
  edge.clear();
  const Trial* chosen = nullptr;
  const auto better = [&](const Trial& one, const Trial& other) {
    const double ours = *one.mean(), theirs = *other.mean();
    if (ours == theirs) return one.mean_loss() < other.mean_loss();
    return lower_is_better(measure) ? ours < theirs : ours > theirs;
  };
  for (const Trial& trial : trials) {
    if (trial.mean() && (chosen == nullptr || better(trial, *chosen))) chosen = &trial;
  }
  if (chosen != nullptr) best = chosen->value;
  if (!best || trials.size() < 2) return;
  if (*best == trials.front().value) edge = "low";
  if (*best == trials.back().value) edge = "high";
}

std::optional<Score> validation_score(const record::RunRecord& record) {
  if (!record.validation) return std::nullopt;
  const std::string measure = record::main_measure(*record.validation);
  if (measure.empty()) return Score{"loss", record.validation->loss, record.validation->loss};
  return Score{measure, record.validation->measures.at(measure), record.validation->loss};
}

bool lower_is_better(const std::string& measure) { return measure == "perplexity" || measure == "loss"; }

std::vector<double> finer_values(const Tuning& tuning) {
  std::vector<double> finer;
  for (size_t i = 0; i < tuning.trials.size(); ++i) {
    if (tuning.trials[i].value != tuning.best) continue;
    const auto add = [&](double neighbour) {
      const double value = between(tuning.trials[i].value, neighbour);
      const auto same = [&](const Trial& trial) { return trial.value == value; };
      if (std::none_of(tuning.trials.begin(), tuning.trials.end(), same)) finer.push_back(value);
    };
    if (i > 0) add(tuning.trials[i - 1].value);
    if (i + 1 < tuning.trials.size()) add(tuning.trials[i + 1].value);
  }
  return finer;
}

spec::RunSpec tuning_spec(const Experiment::Tune& tune, const Experiment::Arm& arm, double value,
                          int64_t seed) {
  spec::RunSpec spec = arm.with_seed(seed);
  spec.fields().set(tune.setting, fmt::format("{}", value));
  if (!spec.validation().on()) spec.task.validation = tune.validation;
  spec.task.test_limit = 1;
  if (tune.epochs > 0 || tune.steps > 0) {
    spec.train.epochs = tune.epochs;
    spec.train.steps = tune.steps;
  }
  return spec;
}

}  // namespace syncopate::lab
