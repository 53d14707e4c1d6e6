#include "syncopate/run/prediction.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/run/local_costs.h"
#include "syncopate/sim/predict.h"

namespace syncopate::run {
namespace {

sim::Profile profile_of(const spec::RunSpec& spec, const record::RunRecord& measured,
                        const parallel::Replica& replica) {
  sim::Profile profile{.task = measured.task,
                       .model = measured.model,
                       .optimizer = spec.optim.name,
                       .precision = measured.precision,
                       .device = measured.device,
                       .cpu = measured.cpu,
                       .workers = spec.comm.workers,
                       .threads = measured.threads,
                       .cores = measured.cores};
  const double known = measured.forward_ms + measured.backward_ms + measured.optimizer_ms;
  profile.times = {{.batch = std::max<int64_t>(1, spec.examples_per_step() / spec.comm.workers),
                    .forward_s = measured.forward_ms / 1e3,
                    .backward_s = measured.backward_ms / 1e3,
                    .update_s = measured.optimizer_ms / 1e3,
                    .data_s = measured.data_ms / 1e3,
                    .other_s = std::max(0.0, measured.compute_ms - known) / 1e3}};
  for (const auto& entry : replica.params.entries())
    profile.parameters.push_back({.name = entry.name, .shape = entry.parameter.sizes().vec()});
  std::vector<std::string> codecs{spec.codec.name};
  if (spec.codec.name == "one-bit") codecs.emplace_back("int8");  // of embeddings' rows
  if (spec.codec.name != "none")
    profile.codecs = codec_speeds(codecs, {.ratio = spec.codec.ratio, .rank = spec.codec.rank});
  profile.local = measure_local_costs();
  return profile;
}

/// How many rows of its embeddings a run reads is seen in what it sent: the number with which the prediction
/// sends as much.
void find_rows(const spec::RunSpec& spec, sim::Scene& scene, const std::vector<size_t>& tables, double sent) {
  const auto set = [&](double rows) {
    for (const size_t table : tables) scene.profile.parameters[table].rows = rows;
  };
  double low = 1e-3, high = 1;
  for (const size_t table : tables)
    high = std::max(high, static_cast<double>(scene.profile.parameters[table].shape[0]));
  for (int i = 0; i < 24; ++i) {
    const double middle = std::sqrt(low * high);
    set(middle);
    (sim::predict(spec, scene).bytes_per_step < sent ? low : high) = middle;
  }
}

}  // namespace

std::optional<record::PredictionRecord> predict_run(const spec::RunSpec& spec, const Placement& placement,
                                                    const record::RunRecord& measured,
                                                    const parallel::Replica& replica) try {
  if (measured.forward_ms <= 0 || measured.steps < 2 || measured.bytes_sent_per_step <= 0)
    return std::nullopt;
  sim::Scene scene{.topology = placement.topology,
                   .seats = placement.seats,
                   .profile = profile_of(spec, measured, replica),
                   .one_machine = true};
  std::vector<size_t> tables;
  const auto& entries = replica.params.entries();
  for (const at::Tensor& table : replica.model.row_tables()) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (replica.params.find(table) == &entries[i]) tables.push_back(i);
    }
  }
  if (!tables.empty()) find_rows(spec, scene, tables, measured.bytes_sent_per_step);
  const sim::Prediction step = sim::predict(spec, scene);
  return record::PredictionRecord{.ms = step.ms,
                                  .compute_ms = step.compute_ms,
                                  .exchange_ms = step.exchange_ms,
                                  .hidden_ms = step.hidden_ms,
                                  .bytes_sent_per_step = step.bytes_per_step,
                                  .from = "this run"};
} catch (const Error& error) {
  tell("note: what a step was to take on this network could not be predicted: {}", error.what());
  return std::nullopt;
}

}  // namespace syncopate::run
