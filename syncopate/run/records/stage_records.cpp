#include "syncopate/run/records/stage_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/comm/together/gather_text.h"
#include "syncopate/parallel/pipeline/cut.h"
#include "syncopate/record/stages.h"

namespace syncopate::run {
namespace {

using record::busy_ms;
using record::StageRecord;
using record::waiting_ms;

}  // namespace

record::PipelineRecord pipeline_record(const spec::RunSpec& spec, const std::string& cut) {
  return {.replicas = spec.replicas(),
          .schedule = spec.pipeline.schedule,
          .micro_batches = spec.train.accumulate * spec.micro_batches(),
          .cut = cut,
          .activation_codec = spec.activation.codec,
          .coded_evaluations = spec.activation.codec != "none" && spec.activation.eval == "coded"};
}

StageRecord stage_record(const parallel::PipelineEngine& engine, const record::StepRecord& step,
                         const comm::Meter& sent, int64_t steps) {
  StageRecord stage;
  const parallel::StageWork work = engine.warm_work();
  const double timed = static_cast<double>(std::max<int64_t>(1, work.steps));
  const auto ms = [&](double seconds) { return 1e3 * seconds / timed; };
  stage.ms = step.ms;
  stage.forward_ms = ms(work.forward);
  stage.backward_ms = ms(work.backward);
  stage.coding_ms = ms(work.coding);
  stage.waiting_forward_ms = ms(work.waiting_forward);
  stage.waiting_backward_ms = ms(work.waiting_backward);
  stage.sending_ms = ms(work.sending);
  stage.exchange_ms = std::max(0.0, step.exchange_ms - waiting_ms(stage));
  stage.optimizer_ms = step.optimizer_ms;
  stage.data_ms = step.data_ms;
  stage.other_ms =
      std::max(0.0, stage.ms - busy_ms(stage) - waiting_ms(stage) - stage.exchange_ms - stage.data_ms);
  stage.bubble = stage.ms > 0 ? std::clamp(1 - busy_ms(stage) / stage.ms, 0.0, 1.0) : 0;

  const parallel::StageWork& all = engine.work();
  const double made = static_cast<double>(std::max<int64_t>(1, steps));
  const auto carried = [&](comm::Payload payload) {
    return static_cast<double>(sent.carried[static_cast<size_t>(payload)]);
  };
  stage.bytes_forward = all.forward_bytes / made;
  stage.bytes_backward = all.backward_bytes / made;
  stage.bytes_tied = all.tied_bytes / made;
  stage.bytes_gradients =
      std::max(0.0, (carried(comm::Payload::kGradients) + carried(comm::Payload::kParameters)) / made -
                        stage.bytes_tied);
  if (engine.after() != nullptr) {
    const parallel::ActivationTraffic forward = engine.after()->sums().forward;
    stage.bits_forward = forward.bits_per_value();
    stage.error_forward = forward.relative_error();
  }
  if (engine.before() != nullptr) {
    const parallel::ActivationTraffic backward = engine.before()->sums().backward;
    stage.bits_backward = backward.bits_per_value();
    stage.error_backward = backward.relative_error();
  }
  return stage;
}

std::vector<StageRecord> gather_stages(const spec::RunSpec& spec, const std::string& cut,
                                       comm::Group& workers, const StageRecord& mine) {
  const std::vector<std::string> all = comm::gather_text(workers, record::to_json(mine).dump(), 0);
  if (workers.rank() != 0) return {};
  const std::vector<int64_t> blocks = parallel::parse_cut(cut);
  std::vector<StageRecord> stages;
  for (const std::vector<int>& ranks : spec.layout()) {
    std::vector<StageRecord> replicas;
    for (const int rank : ranks) {
      replicas.push_back(
          record::stage_from_json(nlohmann::ordered_json::parse(all[static_cast<size_t>(rank)])));
    }
    StageRecord stage = record::mean_of(replicas);
    stage.ranks.assign(ranks.begin(), ranks.end());
    stage.blocks = blocks.at(stages.size());
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::vector<std::string> stages_in_words(const std::vector<StageRecord>& stages) {
  if (stages.empty()) return {};
  const auto slowest = std::max_element(stages.begin(), stages.end(),
                                        [](const auto& a, const auto& b) { return busy_ms(a) < busy_ms(b); });
  double step = 0, bubble = 0, waiting = 0, exchange = 0;
  for (const StageRecord& stage : stages) {
    step += stage.ms;
    bubble += stage.bubble;
    waiting += waiting_ms(stage);
    exchange += stage.exchange_ms;
  }
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("stages: of 0 to {}, stage {} is the slowest with {:.1f} ms of work in a step of {:.1f} "
                  "(forward {:.1f}, "
                  "backward {:.1f}, coding {:.1f}, update {:.1f})",
                  stages.size() - 1, slowest - stages.begin(), busy_ms(*slowest), slowest->ms,
                  slowest->forward_ms, slowest->backward_ms, slowest->coding_ms, slowest->optimizer_ms));
  lines.push_back(fmt::format(
      "idle: a stage computes nothing in {:.0f} % of a step; {:.0f} % is waiting for other stages, {:.0f} % "
      "for "
      "replicas and the step's end",
      100 * bubble / static_cast<double>(stages.size()), 100 * waiting / step, 100 * exchange / step));
  return lines;
}

}  // namespace syncopate::run
