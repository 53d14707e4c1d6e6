// What is known of a run, from the sweep and from its files.
#include <algorithm>
#include <cmath>

#include "syncopate/base/text.h"
#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/plain_text.h"
#include "syncopate/report/traits.h"

namespace syncopate::report {
namespace {

double positive(double value) { return value > 0 ? value : kUnknown; }

/// What it was asked to do, and what its files say before it is finished.
RunResult begun(const RunData& run) {
  RunResult r;
  r.id = run.id;
  r.arm = run.arm;
  r.row = run.row;
  r.name = run.name;
  r.kind = run.kind;
  r.folder = run.folder;
  r.state = run.state;
  r.message = utf8(run.message);
  r.axes = run.axes;
  r.seed = run.seed;
  r.lr = run.lr;
  r.reused = run.reused;
  r.other_version = run.other_version;
  r.alone = run.alone;
  const RunFiles& files = *run.files;
  r.strategy = files.setting("strategy.name");
  r.codec = files.setting("codec.name");
  std::string workers = files.setting("comm.workers"), stages = files.setting("pipeline.stages");
  r.activation_codec = files.setting("activation.codec");
  if (files.settings.empty()) {  // not begun: as the experiment says
    for (const auto& [name, value] : run.axes) {
      if (name == "strategy.name") r.strategy = value;
      if (name == "codec.name") r.codec = value;
      if (name == "comm.workers") workers = value;
      if (name == "pipeline.stages") stages = value;
      if (name == "activation.codec") r.activation_codec = value;
    }
    if (r.strategy.empty() && is_strategy(run.row)) r.strategy = run.row;
  }
  r.workers = parse_integer(workers).value_or(1);
  r.stages = std::max<int64_t>(1, parse_integer(stages).value_or(1));
  if (r.stages == 1) r.activation_codec.clear();
  r.network.name = files.setting("network.name");
  if (const auto scale = parse_number(files.setting("network.scale")); scale && *scale > 0)
    r.network.scale = *scale;
  r.curve = files.curve;
  if (run.state == "running") r.progress = files.progress;
  r.host = files.host;
  r.cpu = files.cpu;
  r.command = files.command;
  r.date = files.date;
  r.version = files.version;
  r.commit = files.commit;
  return r;
}

/// What a finished run measured.
void take_figures(const record::RunRecord& record, RunResult& r) {
  r.loss = record.train_loss;
  r.workers = record.workers;
  r.ms = positive(record.ms_per_iteration);
  r.ms_p50 = positive(record.ms_p50);
  r.ms_p95 = positive(record.ms_p95);
  r.examples_per_s = positive(record.examples_per_s);
  r.train_seconds = positive(record.train_seconds);
  r.bytes_per_step = record.bytes_sent_per_step;
  r.bytes_by_kind = record.bytes_by_kind;
  r.outside_load = record.outside_load;
  r.peak_memory = positive(static_cast<double>(record.peak_memory));
  r.noise_scale = record.noise_scale;
  r.examples = record.examples;
  r.steps = record.steps;
  r.global_batch = record.global_batch;
  if (r.global_batch == 0 && record.steps > 0)
    r.global_batch = static_cast<int64_t>(
        std::llround(static_cast<double>(record.examples) / static_cast<double>(record.steps)));
  if (const auto& eval = record.eval ? record.eval : record.validation) {
    r.measures = eval->measures;
    r.tested = eval->examples;
  }
  r.parts = {.data = record.data_ms, .compute = record.compute_ms, .exchange = record.exchange_ms};
  if (record.forward_ms + record.backward_ms + record.optimizer_ms > 0) {
    r.parts.forward = record.forward_ms;
    r.parts.backward = record.backward_ms;
    r.parts.optimizer = record.optimizer_ms;
    r.parts.hidden = record.hidden_ms;
  }
  if (record.network) {
    r.network = {.name = record.network->name, .scale = record.network->scale};
    r.late = !record.network->trustworthy;
  }
  if (record.predicted) {
    r.predicted = Predicted{.ms = record.predicted->ms,
                            .compute_ms = record.predicted->compute_ms,
                            .exchange_ms = record.predicted->exchange_ms,
                            .hidden_ms = record.predicted->hidden_ms,
                            .bytes_per_step = record.predicted->bytes_sent_per_step,
                            .from = record.predicted->from};
    if (r.ms > 0) r.predicted->error = (r.predicted->ms - r.ms) / r.ms;
  }
  const auto over_stages = [&](double record::StageRecord::*value) {
    std::vector<double> values;
    for (const record::StageRecord& stage : record.stages) {
      if (std::isfinite(stage.*value)) values.push_back(stage.*value);
    }
    return estimate(std::move(values)).mean;
  };
  r.bubble = over_stages(&record::StageRecord::bubble);
  r.bits_forward = over_stages(&record::StageRecord::bits_forward);
  r.bits_backward = over_stages(&record::StageRecord::bits_backward);
  r.simulated = record.simulated;
}

/// Where and from what it ran.
void take_origin(const record::RunRecord& record, RunResult& r) {
  r.cpu = record.cpu.empty() ? r.cpu : record.cpu;
  r.cores = record.cores;
  r.threads = record.threads;
  r.start_hash = record.start_hash;
  r.data_hash = record.data_hash;
  r.test_hash = record.test_hash;
  r.host = record.provenance.host;
  r.command = record.provenance.command;
  r.date = record.provenance.date;
  r.version = record.provenance.version;
  r.commit = record.provenance.commit;
}

}  // namespace

RunResult result_of(const RunData& run) {
  RunResult result = begun(run);
  if (!run.done()) return result;
  take_figures(*run.files->record, result);
  take_origin(*run.files->record, result);
  return result;
}

}  // namespace syncopate::report
