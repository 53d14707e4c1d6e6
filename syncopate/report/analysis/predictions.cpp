// Predicted beside measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/reading/attachments.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

using Json = nlohmann::ordered_json;
using Step = PredictionPoint::Step;

constexpr const char* kLate = "the machine was too busy to emulate its network";

double error_of(double predicted, double measured) {
  return measured > 0 ? (predicted - measured) / measured : kUnknown;
}

Step measured_step(const ArmResult& arm) {
  return {.ms = arm.ms.mean,
          .compute_ms = arm.parts.compute,
          .exchange_ms = arm.parts.exchange,
          .hidden_ms = arm.parts.hidden};
}

/// Why an arm's time is nothing to hold a prediction against; empty: it is.
std::string why_not(const ArmResult& arm) {
  if (arm.has_flag("late")) return kLate;
  if (arm.has_flag("busy")) return "others kept the machine busy";
  if (!arm.timed_fairly()) return "its timing does not count";
  return "";
}

/// The mean prediction of an arm's runs, and how far it is from the mean of the same runs' times.
std::optional<Predicted> prediction_of(const Comparison& of, size_t arm) {
  Predicted mean{.ms = 0, .compute_ms = 0, .exchange_ms = 0, .hidden_ms = 0, .bytes_per_step = 0};
  double measured = 0, count = 0;
  for (const size_t place : of.places[arm]) {
    const RunResult& run = of.results.runs[place];
    if (!run.predicted || !std::isfinite(run.ms)) continue;
    mean.ms += run.predicted->ms;
    mean.compute_ms += run.predicted->compute_ms;
    mean.exchange_ms += run.predicted->exchange_ms;
    mean.hidden_ms += run.predicted->hidden_ms;
    mean.bytes_per_step += run.predicted->bytes_per_step;
    measured += run.ms;
    if (mean.from.empty()) mean.from = run.predicted->from;
    ++count;
  }
  if (count == 0) return std::nullopt;
  for (double* value : {&mean.ms, &mean.compute_ms, &mean.exchange_ms, &mean.hidden_ms, &mean.bytes_per_step})
    *value /= count;
  mean.error = error_of(mean.ms, measured / count);
  return mean;
}

/// Whether a setting says nothing about how long a step takes.
bool leaves_steps_alone(std::string_view setting) {
  constexpr std::string_view kNames[] = {"train.seed",       "train.steps",     "train.epochs",
                                         "train.time_limit", "train.patience",  "train.eval_every",
                                         "train.keep",       "train.save_every"};
  return std::find(std::begin(kNames), std::end(kNames), setting) != std::end(kNames);
}

/// The same in a run and in its simulation.
std::string settings_key(const RunData& run) {
  std::string key;
  for (const auto& [name, value] : run.files->settings) {
    if (!leaves_steps_alone(name)) key += name + "=" + value + "\n";
  }
  return key;
}

void add_points_of_arms(Comparison& of) {
  std::map<std::string, size_t> measured;
  for (size_t i = 0; i < of.results.arms.size(); ++i) {
    const ArmResult& arm = of.results.arms[i];
    const RunData* any = of.any_done(i);
    if (any == nullptr || arm.simulated || !arm.ms.known()) continue;
    measured.emplace(settings_key(*any), i);
    if (!arm.predicted) continue;
    of.results.predictions.push_back({.series = "run",
                                      .name = arm.name,
                                      .family = arm.family,
                                      .network = network_text(arm.on),
                                      .arm = arm.id,
                                      .predicted = {.ms = arm.predicted->ms,
                                                    .compute_ms = arm.predicted->compute_ms,
                                                    .exchange_ms = arm.predicted->exchange_ms,
                                                    .hidden_ms = arm.predicted->hidden_ms},
                                      .measured = measured_step(arm),
                                      .error = arm.predicted->error,
                                      .why_not = why_not(arm)});
  }
  for (size_t i = 0; i < of.results.arms.size(); ++i) {
    const ArmResult& arm = of.results.arms[i];
    const RunData* any = of.any_done(i);
    if (any == nullptr || !arm.simulated) continue;
    const auto twin = measured.find(settings_key(*any));
    if (twin == measured.end()) continue;
    const ArmResult& real = of.results.arms[twin->second];
    of.results.predictions.push_back({.series = "simulated",
                                      .name = real.name,
                                      .family = real.family,
                                      .network = network_text(real.on),
                                      .arm = real.id,
                                      .predicted = measured_step(arm),
                                      .measured = measured_step(real),
                                      .error = error_of(arm.ms.mean, real.ms.mean),
                                      .why_not = why_not(real)});
  }
}

Step step_in(const Json& json) {
  const auto number = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number() ? found->get<double>() : kUnknown;
  };
  return {.ms = number("ms"),
          .compute_ms = number("compute_ms"),
          .exchange_ms = number("exchange_ms"),
          .hidden_ms = number("hidden_ms")};
}

void add_points_of_advice(Results& results) {
  if (!results.advice_check) return;
  const Json advice = Json::parse(results.advice_check->json);
  for (const Json& row : advice.at("rows")) {
    const auto measured = row.find("measured");
    if (measured == row.end() || !measured->is_object()) continue;
    PredictionPoint point{.series = "advice",
                          .name = advice_row_name(row),
                          .family = row.value("family", std::string()),
                          .network = advice_network(advice),
                          .predicted = step_in(row.at("predicted")),
                          .measured = step_in(*measured)};
    point.error = error_of(point.predicted.ms, point.measured.ms);
    if (const auto well = measured->find("trustworthy"); well != measured->end() && *well == false)
      point.why_not = kLate;
    if (std::isfinite(point.error)) results.predictions.push_back(std::move(point));
  }
}

}  // namespace

void find_predictions(Comparison& of) {
  for (size_t i = 0; i < of.results.arms.size(); ++i) {
    // Of a simulation the two would be the same number.
    if (!of.results.arms[i].simulated) of.results.arms[i].predicted = prediction_of(of, i);
  }
  add_points_of_arms(of);
  add_points_of_advice(of.results);
  for (const char* series : {"run", "simulated", "advice"}) {
    PredictionSummary summary{.series = series};
    std::vector<double> sizes, rest;
    for (const PredictionPoint& point : of.results.predictions) {
      if (point.series != series) continue;
      if (!point.why_not.empty()) {
        ++summary.left_out;
        rest.push_back(std::abs(point.error));
        continue;
      }
      sizes.push_back(std::abs(point.error));
    }
    if (sizes.empty() && summary.left_out == 0) continue;
    summary.n = static_cast<int64_t>(sizes.size());
    summary.within_10 = std::count_if(sizes.begin(), sizes.end(), [](double size) { return size <= 0.1; });
    summary.within_20 = std::count_if(sizes.begin(), sizes.end(), [](double size) { return size <= 0.2; });
    summary.median = quantile(sizes, 0.5);
    summary.p90 = quantile(sizes, 0.9);
    summary.left_out_median = median(rest);
    of.results.prediction_errors.push_back(summary);
  }
}

}  // namespace syncopate::report
