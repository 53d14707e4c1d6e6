#include "syncopate/run/prediction.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/together/gather_text.h"
#include "syncopate/sim/predict.h"
#include "syncopate/spec/strategies.h"

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
  profile.times = {{.batch = std::max<int64_t>(1, spec.examples_per_step() / spec.replicas()),
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

/// One micro-batch of a stage that was measured, waiting for cores included.
sim::StageCost cost_of(const spec::RunSpec& spec, const record::StageRecord& stage, bool at_an_end) {
  const auto micro = static_cast<double>(spec.train.accumulate * spec.micro_batches());
  // Packed and unpacked at each cut that the stage has.
  const double coding = stage.coding_ms / 1e3 / micro / (at_an_end ? 2 : 4);
  // The typical step is a first visit of its examples, or it is not; a mean over the run is neither.
  double forward_bytes = stage.bytes_forward / micro;
  if (spec::activation_codec_info(spec.activation.codec).remembers && stage.bits_forward > 0) {
    const std::string& visit = spec.activation.first_visit;
    const double first = visit == "full" ? 32 : visit == "half" ? 16 : 8;
    const auto later = static_cast<double>(spec.activation.forward_bits);
    forward_bytes *= (stage.bits_forward < (first + later) / 2 ? later : first) / stage.bits_forward;
  }
  return {.forward_s = stage.forward_ms / 1e3 / micro,
          .backward_s = stage.backward_ms / 1e3 / micro,
          .pack_s = coding,
          .unpack_s = coding,
          .pack_gradient_s = coding,
          .unpack_gradient_s = coding,
          .forward_bytes = forward_bytes,
          .backward_bytes = stage.bytes_backward / micro};
}

record::PredictionRecord predict_scene(const spec::RunSpec& spec, sim::Scene& scene,
                                       const std::vector<size_t>& tables, double sent,
                                       const std::string& from) {
  if (!tables.empty() && spec.replicas() > 1) find_rows(spec, scene, tables, sent);
  const sim::Prediction step = sim::predict(spec, scene);
  return {.ms = step.ms,
          .compute_ms = step.compute_ms,
          .exchange_ms = step.exchange_ms,
          .hidden_ms = step.hidden_ms,
          .bytes_sent_per_step = record::kNan,
          .from = from};
}

/// A run that is done is not lost for a prediction.
template <typename Make>
std::optional<record::PredictionRecord> or_nothing(const Make& make) try {
  return make();
} catch (const std::exception& error) {
  const std::string text = error.what();  // of a library: with its stack
  tell("note: what a step was to take on this network could not be predicted: {}", split(text, '\n').front());
  return std::nullopt;
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

std::vector<ModelShape> gather_shapes(const spec::RunSpec& spec, const parallel::Replica& replica,
                                      comm::Group& workers) {
  using Json = nlohmann::ordered_json;
  const ModelShape mine = shape_of(replica);
  Json parameters = Json::array();
  for (const sim::ParameterProfile& each : mine.parameters) parameters.push_back({each.name, each.shape});
  const std::vector<std::string> all =
      comm::gather_text(workers, Json{{"parameters", parameters}, {"tables", mine.tables}}.dump(), 0);
  if (workers.rank() != 0) return {};
  std::vector<ModelShape> stages;
  for (const std::vector<int>& ranks : spec.layout()) {
    const Json json = Json::parse(all[static_cast<size_t>(ranks.front())]);
    ModelShape& stage = stages.emplace_back();
    for (const Json& each : json.at("parameters"))
      stage.parameters.push_back(
          {.name = each.at(0).get<std::string>(), .shape = each.at(1).get<std::vector<int64_t>>()});
    stage.tables = json.at("tables").get<std::vector<size_t>>();
  }
  return stages;
}

std::optional<record::PredictionRecord> predict_run(const spec::RunSpec& asked, const Placement& placement,
                                                    const record::RunRecord& measured,
                                                    const ModelShape& model,
                                                    const std::function<sim::LocalCosts()>& local_costs) {
  if (measured.forward_ms <= 0 || measured.steps < 2 || measured.bytes_sent_per_step <= 0)
    return std::nullopt;
  return or_nothing([&] {
    spec::RunSpec spec = asked;
    spec.compute.threads = measured.threads;  // the times are of this run: nothing about them changes
    spec.strategy.share_update = false;
    sim::Scene scene{.topology = placement.topology,
                     .seats = placement.seats,
                     .profile = profile_of(spec, measured, model, local_costs),
                     .one_machine = true};
    return predict_scene(spec, scene, model.tables, measured.bytes_sent_per_step,
                         "this run's own compute and embedding rows");
  });
}

std::optional<record::PredictionRecord> predict_run(const spec::RunSpec& asked, const Placement& placement,
                                                    const record::RunRecord& measured,
                                                    const std::vector<ModelShape>& stages,
                                                    const std::function<sim::LocalCosts()>& local_costs) {
  if (stages.empty() || stages.size() != measured.stages.size() || measured.steps < 2) return std::nullopt;
  return or_nothing([&] {
    spec::RunSpec spec = asked;
    spec.compute.threads = measured.threads;
    spec.strategy.share_update = false;
    spec.pipeline.cut.clear();
    ModelShape model;
    sim::Scene scene{.topology = placement.topology, .seats = placement.seats, .one_machine = true};
    double work = 0, update = 0, other = 0;
    std::vector<sim::LayerProfile> blocks;  // one for each stage, as long as it took
    for (size_t k = 0; k < stages.size(); ++k) {
      const record::StageRecord& stage = measured.stages[k];
      spec.pipeline.cut += k == 0 ? "1" : ",1";
      for (const size_t table : stages[k].tables) model.tables.push_back(model.parameters.size() + table);
      for (sim::ParameterProfile parameter : stages[k].parameters) {
        parameter.layer = static_cast<int64_t>(k);
        model.parameters.push_back(std::move(parameter));
      }
      scene.stages.push_back(cost_of(spec, stage, k == 0 || k + 1 == stages.size()));
      blocks.push_back({.share = stage.forward_ms + stage.backward_ms});
      work += blocks.back().share;
      update += stage.optimizer_ms;
      other += stage.other_ms;
    }
    for (sim::LayerProfile& block : blocks) block.share /= work;
    scene.profile = profile_of(spec, measured, model, local_costs);
    scene.profile.layers = std::move(blocks);
    scene.profile.tied_bytes = measured.stages.front().bytes_tied;
    scene.profile.times.front().update_s = update / 1e3;
    scene.profile.times.front().other_s = other / 1e3;
    return predict_scene(spec, scene, model.tables, measured.bytes_sent_per_step,
                         "this run's own compute, activations and embedding rows");
  });
}

std::optional<record::PredictionRecord> predict_run(const spec::RunSpec& spec, const Placement& placement,
                                                    const record::RunRecord& measured,
                                                    const parallel::Replica& replica) {
  return predict_run(spec, placement, measured, shape_of(replica));
}

}  // namespace syncopate::run
