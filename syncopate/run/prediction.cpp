#include "syncopate/run/prediction.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/sim/predict.h"

namespace syncopate::run {
namespace {

/// By how much comm.slow lengthens the passes that were measured: rank 0's, or where workers run free those
/// of all updates, of which the slow make fewer.
double slowness_measured(const spec::RunSpec& spec) {
  if (!spec.runs_free()) return spec.slowness_of(0);
  double rates = 0;
  for (int rank = 0; rank < spec.comm.workers; ++rank) rates += 1 / spec.slowness_of(rank);
  return static_cast<double>(spec.comm.workers) / rates;
}

sim::Profile profile_of(const spec::RunSpec& spec, const record::RunRecord& measured, const ModelShape& model,
                        const std::function<sim::LocalCosts()>& local_costs) {
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
  // A slow worker sleeps behind its backward pass, and that is counted as backward.
  const double passes = (measured.forward_ms + measured.backward_ms) / slowness_measured(spec);
  profile.times = {{.batch = std::max<int64_t>(1, spec.examples_per_step() / spec.comm.workers),
                    .forward_s = measured.forward_ms / 1e3,
                    .backward_s = std::max(0.0, passes - measured.forward_ms) / 1e3,
                    .update_s = measured.optimizer_ms / 1e3,
                    .data_s = measured.data_ms / 1e3,
                    .other_s = std::max(0.0, measured.compute_ms - known) / 1e3}};
  profile.parameters = model.parameters;
  std::vector<std::string> codecs{spec.codec.name};
  if (spec.codec.name == "one-bit") codecs.emplace_back("int8");  // of embeddings' rows
  if (spec.codec.name != "none")
    profile.codecs = codec_speeds(codecs, {.ratio = spec.codec.ratio, .rank = spec.codec.rank});
  profile.local = local_costs();
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

ModelShape shape_of(const parallel::Replica& replica) {
  ModelShape shape;
  const auto& entries = replica.params.entries();
  for (const auto& entry : entries)
    shape.parameters.push_back({.name = entry.name, .shape = entry.parameter.sizes().vec()});
  for (const at::Tensor& table : replica.model.row_tables()) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (replica.params.find(table) == &entries[i]) shape.tables.push_back(i);
    }
  }
  return shape;
}

std::optional<record::PredictionRecord> predict_run(const spec::RunSpec& asked, const Placement& placement,
                                                    const record::RunRecord& measured,
                                                    const ModelShape& model,
                                                    const std::function<sim::LocalCosts()>& local_costs) try {
  if (measured.forward_ms <= 0 || measured.steps < 2 || measured.bytes_sent_per_step <= 0)
    return std::nullopt;
  spec::RunSpec spec = asked;
  spec.compute.threads = measured.threads;  // the times are of this run: nothing about them changes
  sim::Scene scene{.topology = placement.topology,
                   .seats = placement.seats,
                   .profile = profile_of(spec, measured, model, local_costs),
                   .one_machine = true};
  if (!model.tables.empty()) find_rows(spec, scene, model.tables, measured.bytes_sent_per_step);
  const sim::Prediction step = sim::predict(spec, scene);
  return record::PredictionRecord{.ms = step.ms,
                                  .compute_ms = step.compute_ms,
                                  .exchange_ms = step.exchange_ms,
                                  .hidden_ms = step.hidden_ms,
                                  .bytes_sent_per_step = record::kNan,
                                  .from = "this run's own compute and embedding rows"};
} catch (const std::exception& error) {
  const std::string text = error.what();  // of a library: with its stack
  tell("note: what a step was to take on this network could not be predicted: {}", split(text, '\n').front());
  return std::nullopt;
}

std::optional<record::PredictionRecord> predict_run(const spec::RunSpec& spec, const Placement& placement,
                                                    const record::RunRecord& measured,
                                                    const parallel::Replica& replica) {
  return predict_run(spec, placement, measured, shape_of(replica));
}

}  // namespace syncopate::run
