#include "syncopate/report/files/sheets.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "syncopate/base/text.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

Cell number(double value) { return std::isfinite(value) ? Cell(value) : Cell(); }
Cell count(int64_t value) { return static_cast<double>(value); }
Cell known(int64_t value) { return value > 0 ? count(value) : Cell(); }
Cell text(const std::string& value) { return value.empty() ? Cell() : Cell(value); }
Cell truth(bool value) { return std::string(value ? "true" : "false"); }

Cell scale(const NetworkName& network) { return network.name.empty() ? Cell() : number(network.scale); }

/// A setting: as a number where it is one.
Cell setting(const std::string& value) {
  const auto parsed = parse_number(value);
  return parsed && std::isfinite(*parsed) ? Cell(*parsed) : text(value);
}

Cell setting_in(const Settings& settings, const std::string& name) {
  for (const auto& [key, value] : settings) {
    if (key == name) return setting(value);
  }
  return {};
}

/// Builds a sheet column by column: a name, and what each thing says.
template <typename Thing>
class Columns {
 public:
  explicit Columns(const std::vector<Thing>& things) : things_(things) {}

  template <typename Say>
  void add(const std::string& name, const Say& say) {
    sheet.head.push_back(name);
    sheet.rows.resize(things_.size());
    for (size_t i = 0; i < things_.size(); ++i) sheet.rows[i].push_back(say(things_[i]));
  }

  Sheet sheet{};

 private:
  const std::vector<Thing>& things_;
};

std::string codes(const std::vector<Flag>& flags) {
  std::string all;
  for (const Flag& flag : flags) all += (all.empty() ? "" : " ") + flag.code;
  return all;
}

std::string failed_checks(const ArmResult& arm) {
  std::string all;
  for (const Check& check : arm.checks) {
    if (!check.ok) all += (all.empty() ? "" : " ") + check.code;
  }
  return all;
}

/// Settings that tell rows apart: axes in the file's order, then what else varies. `taken` have columns
/// already.
std::vector<std::string> telling_settings(const Results& results, const std::set<std::string>& taken) {
  std::vector<std::string> names;
  for (const auto* list : {&results.axes, &results.varies}) {
    for (const std::string& name : *list) {
      if (!taken.contains(name) && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  return names;
}

const std::set<std::string> kOwnColumns{"strategy.name", "codec.name",      "comm.workers",
                                        "optim.lr",      "train.seed",      "network.name",
                                        "network.scale", "pipeline.stages", "activation.codec"};

/// Whether anything is told of pipelines.
template <typename Each>
bool any_staged(const std::vector<Each>& all) {
  return std::any_of(all.begin(), all.end(), [](const Each& each) { return each.stages > 1; });
}

}  // namespace

Sheet runs_sheet(const Results& results) {
  std::map<std::string, const ArmResult*> arms;
  for (const ArmResult& arm : results.arms) arms[arm.id] = &arm;
  const auto arm_of = [&](const RunResult& run) -> const ArmResult* {
    const auto found = arms.find(run.arm);
    return found == arms.end() || run.kind == "tune" ? nullptr : found->second;
  };
  Columns<RunResult> columns(results.runs);
  columns.sheet.name = "runs";
  columns.add("name", [](const RunResult& run) { return text(run.name); });
  columns.add("row", [](const RunResult& run) { return text(run.row); });
  columns.add("kind", [](const RunResult& run) { return text(run.kind); });
  columns.add("seed", [](const RunResult& run) { return count(run.seed); });
  columns.add("state", [](const RunResult& run) { return text(run.state); });
  columns.add("strategy", [](const RunResult& run) { return text(run.strategy); });
  columns.add("codec", [](const RunResult& run) { return text(run.codec); });
  columns.add("workers", [](const RunResult& run) { return known(run.workers); });
  if (any_staged(results.runs)) {
    columns.add("stages", [](const RunResult& run) { return count(run.stages); });
    columns.add("activation_codec", [](const RunResult& run) { return text(run.activation_codec); });
    columns.add("bubble", [](const RunResult& run) { return number(run.bubble); });
    columns.add("bits_forward", [](const RunResult& run) { return number(run.bits_forward); });
    columns.add("bits_backward", [](const RunResult& run) { return number(run.bits_backward); });
  }
  columns.add("lr", [](const RunResult& run) { return number(run.lr); });
  columns.add("network", [](const RunResult& run) { return text(run.network.name); });
  columns.add("network_scale", [](const RunResult& run) { return scale(run.network); });
  for (const std::string& name : telling_settings(results, kOwnColumns)) {
    columns.add(name, [&](const RunResult& run) {
      const Cell value = setting_in(run.settings, name);
      return value.index() == 0 ? setting_in(run.axes, name) : value;
    });
  }
  columns.add("quality", [](const RunResult& run) { return number(run.quality); });
  std::set<std::string> measures;
  for (const RunResult& run : results.runs) {
    for (const auto& each : run.measures) measures.insert(each.first);
  }
  for (const std::string& name : measures) {
    columns.add(name, [&](const RunResult& run) {
      const auto found = run.measures.find(name);
      return found == run.measures.end() ? Cell() : number(found->second);
    });
  }
  columns.add("train_loss", [](const RunResult& run) { return number(run.loss); });
  columns.add("collapsed", [](const RunResult& run) { return truth(run.collapsed); });
  columns.add("speedup", [](const RunResult& run) { return number(run.speedup); });
  columns.add("examples_per_s", [](const RunResult& run) { return number(run.examples_per_s); });
  columns.add("train_seconds", [](const RunResult& run) { return number(run.train_seconds); });
  columns.add("ms", [](const RunResult& run) { return number(run.ms); });
  columns.add("ms_p50", [](const RunResult& run) { return number(run.ms_p50); });
  columns.add("ms_p95", [](const RunResult& run) { return number(run.ms_p95); });
  columns.add("data_ms", [](const RunResult& run) { return number(run.parts.data); });
  columns.add("compute_ms", [](const RunResult& run) { return number(run.parts.compute); });
  columns.add("forward_ms", [](const RunResult& run) { return number(run.parts.forward); });
  columns.add("backward_ms", [](const RunResult& run) { return number(run.parts.backward); });
  columns.add("optimizer_ms", [](const RunResult& run) { return number(run.parts.optimizer); });
  columns.add("exchange_ms", [](const RunResult& run) { return number(run.parts.exchange); });
  columns.add("hidden_ms", [](const RunResult& run) { return number(run.parts.hidden); });
  columns.add("predicted_ms",
              [](const RunResult& run) { return run.predicted ? number(run.predicted->ms) : Cell(); });
  columns.add("prediction_error",
              [](const RunResult& run) { return run.predicted ? number(run.predicted->error) : Cell(); });
  columns.add("simulated", [](const RunResult& run) { return truth(run.simulated); });
  const auto measured = [](const RunResult& run) { return run.state == "done"; };
  columns.add("examples", [&](const RunResult& run) { return measured(run) ? count(run.examples) : Cell(); });
  columns.add("updates", [&](const RunResult& run) { return measured(run) ? count(run.steps) : Cell(); });
  columns.add("global_batch", [](const RunResult& run) { return known(run.global_batch); });
  columns.add("bytes_per_step", [](const RunResult& run) { return number(run.bytes_per_step); });
  for (const char* kind : {"gradients", "parameters", "activations", "control"}) {
    columns.add(std::string(kind) + "_bytes", [&](const RunResult& run) {
      const auto found = run.bytes_by_kind.find(kind);
      return found == run.bytes_by_kind.end() ? Cell() : number(found->second);
    });
  }
  columns.add("outside_load", [](const RunResult& run) { return number(run.outside_load); });
  columns.add("peak_memory", [](const RunResult& run) { return number(run.peak_memory); });
  columns.add("noise_scale", [](const RunResult& run) { return number(run.noise_scale); });
  columns.add("excluded", [&](const RunResult& run) {
    const ArmResult* arm = arm_of(run);
    return arm == nullptr ? Cell() : truth(arm->excluded);
  });
  columns.add("failed_checks", [&](const RunResult& run) {
    const ArmResult* arm = arm_of(run);
    return arm == nullptr ? Cell() : text(failed_checks(*arm));
  });
  columns.add("flags", [&](const RunResult& run) {
    const ArmResult* arm = arm_of(run);
    return arm == nullptr ? Cell() : text(codes(arm->flags));
  });
  columns.add("message", [](const RunResult& run) { return text(run.message); });
  columns.add("reused", [](const RunResult& run) { return truth(run.reused); });
  columns.add("alone", [](const RunResult& run) { return truth(run.alone); });
  columns.add("folder", [](const RunResult& run) { return text(run.folder); });
  columns.add("host", [](const RunResult& run) { return text(run.host); });
  columns.add("cpu", [](const RunResult& run) { return text(run.cpu); });
  columns.add("cores", [](const RunResult& run) { return known(run.cores); });
  columns.add("threads", [](const RunResult& run) { return known(run.threads); });
  columns.add("date", [](const RunResult& run) { return text(run.date); });
  columns.add("version", [](const RunResult& run) { return text(run.version); });
  columns.add("commit", [](const RunResult& run) { return text(run.commit); });
  columns.add("start_hash", [](const RunResult& run) { return text(run.start_hash); });
  columns.add("data_hash", [](const RunResult& run) { return text(run.data_hash); });
  columns.add("test_hash", [](const RunResult& run) { return text(run.test_hash); });
  return std::move(columns.sheet);
}

Sheet arms_sheet(const Results& results) {
  Columns<ArmResult> columns(results.arms);
  columns.sheet.name = "arms";
  const auto add_estimate = [&](const std::string& name, auto get) {
    columns.add(name, [=](const ArmResult& arm) { return number(get(arm).mean); });
    columns.add(name + "_sd", [=](const ArmResult& arm) { return number(get(arm).sd); });
    columns.add(name + "_low", [=](const ArmResult& arm) { return number(get(arm).low); });
    columns.add(name + "_high", [=](const ArmResult& arm) { return number(get(arm).high); });
  };
  const auto difference = [](const ArmResult& arm) { return arm.difference.value_or(Difference()); };
  columns.add("name", [](const ArmResult& arm) { return text(arm.name); });
  columns.add("family", [](const ArmResult& arm) { return text(arm.family); });
  columns.add("strategy", [](const ArmResult& arm) { return text(arm.strategy); });
  columns.add("codec", [](const ArmResult& arm) { return text(arm.codec); });
  columns.add("workers", [](const ArmResult& arm) { return count(arm.workers); });
  if (any_staged(results.arms)) {
    columns.add("stages", [](const ArmResult& arm) { return count(arm.stages); });
    columns.add("replicas", [](const ArmResult& arm) { return count(arm.replicas()); });
    columns.add("activation_codec", [](const ArmResult& arm) { return text(arm.activation_codec); });
    const auto pipeline = [&](const char* name, auto get) {
      columns.add(name, [=](const ArmResult& arm) { return arm.pipeline ? get(*arm.pipeline) : Cell(); });
    };
    pipeline("schedule", [](const record::PipelineRecord& p) { return text(p.schedule); });
    pipeline("micro_batches", [](const record::PipelineRecord& p) { return count(p.micro_batches); });
    pipeline("cut", [](const record::PipelineRecord& p) { return text(p.cut); });
    pipeline("coded_evaluations", [](const record::PipelineRecord& p) { return truth(p.coded_evaluations); });
  }
  columns.add("network", [](const ArmResult& arm) { return text(arm.on.name); });
  columns.add("network_scale", [](const ArmResult& arm) { return scale(arm.on); });
  for (const std::string& name : telling_settings(results, kOwnColumns)) {
    columns.add(name, [&](const ArmResult& arm) {
      const Cell value = setting_in(arm.settings, name);
      return value.index() == 0 ? setting_in(arm.axes, name) : value;
    });
  }
  columns.add("state", [](const ArmResult& arm) { return text(arm.state); });
  columns.add("seeds", [](const ArmResult& arm) { return count(arm.quality.n); });
  add_estimate("quality", [](const ArmResult& arm) -> const Estimate& { return arm.quality; });
  add_estimate("difference", difference);
  columns.add("difference_seeds",
              [&](const ArmResult& arm) { return arm.difference ? count(arm.difference->n) : Cell(); });
  columns.add("verdict", [&](const ArmResult& arm) {
    return arm.difference ? text(verdict_text(*arm.difference)) : Cell();
  });
  columns.add("seeds_needed", [](const ArmResult& arm) {
    return arm.difference && arm.difference->seeds_needed ? count(*arm.difference->seeds_needed) : Cell();
  });
  columns.add("compared_with", [&](const ArmResult& arm) {
    const ArmResult* other = arm.difference ? results.arm(arm.difference->against) : nullptr;
    return other == nullptr ? Cell() : text(other->name);
  });
  add_estimate("speedup", [](const ArmResult& arm) -> const Estimate& { return arm.speedup; });
  columns.add("efficiency", [](const ArmResult& arm) { return number(arm.efficiency); });
  columns.add("pareto", [](const ArmResult& arm) { return truth(arm.pareto); });
  add_estimate("ms", [](const ArmResult& arm) -> const Estimate& { return arm.ms; });
  columns.add("ms_p50", [](const ArmResult& arm) { return number(arm.ms_p50); });
  columns.add("ms_p95", [](const ArmResult& arm) { return number(arm.ms_p95); });
  columns.add("data_ms", [](const ArmResult& arm) { return number(arm.parts.data); });
  columns.add("compute_ms", [](const ArmResult& arm) { return number(arm.parts.compute); });
  columns.add("exchange_ms", [](const ArmResult& arm) { return number(arm.parts.exchange); });
  columns.add("hidden_ms", [](const ArmResult& arm) { return number(arm.parts.hidden); });
  const auto predicted = [&](const char* name, double Predicted::*value) {
    columns.add(
        name, [=](const ArmResult& arm) { return arm.predicted ? number((*arm.predicted).*value) : Cell(); });
  };
  predicted("predicted_ms", &Predicted::ms);
  predicted("predicted_compute_ms", &Predicted::compute_ms);
  predicted("predicted_exchange_ms", &Predicted::exchange_ms);
  predicted("prediction_error", &Predicted::error);
  columns.add("simulated", [](const ArmResult& arm) { return truth(arm.simulated); });
  columns.add("examples_per_s", [](const ArmResult& arm) { return number(arm.examples_per_s.mean); });
  columns.add("train_seconds", [](const ArmResult& arm) { return number(arm.train_seconds.mean); });
  columns.add("seconds_per_epoch", [](const ArmResult& arm) { return number(arm.seconds_per_epoch); });
  columns.add("quality_at_time", [](const ArmResult& arm) {
    return arm.quality_at_time ? number(arm.quality_at_time->quality.mean) : Cell();
  });
  columns.add("at_seconds", [](const ArmResult& arm) {
    return arm.quality_at_time ? number(arm.quality_at_time->seconds) : Cell();
  });
  columns.add("seconds_to_target", [](const ArmResult& arm) {
    return arm.time_to_target ? number(arm.time_to_target->seconds.mean) : Cell();
  });
  columns.add("reached_target", [](const ArmResult& arm) {
    return arm.time_to_target ? count(arm.time_to_target->reached) : Cell();
  });
  columns.add("examples", [](const ArmResult& arm) { return number(arm.examples); });
  columns.add("updates", [](const ArmResult& arm) { return number(arm.updates); });
  columns.add("global_batch", [](const ArmResult& arm) { return number(arm.global_batch); });
  columns.add("bytes_per_step", [](const ArmResult& arm) { return number(arm.bytes.per_step); });
  columns.add("total_gib", [](const ArmResult& arm) { return number(arm.bytes.total_gib); });
  columns.add("bus_gbit",
              [](const ArmResult& arm) { return arm.bandwidth ? number(arm.bandwidth->bus_gbit) : Cell(); });
  columns.add("peak_memory", [](const ArmResult& arm) { return number(arm.peak_memory); });
  columns.add("noise_scale", [](const ArmResult& arm) { return number(arm.noise_scale); });
  columns.add("outside_load", [](const ArmResult& arm) { return number(arm.outside_load); });
  columns.add("price", [](const ArmResult& arm) { return arm.price ? number(arm.price->value) : Cell(); });
  columns.add("excluded", [](const ArmResult& arm) { return truth(arm.excluded); });
  columns.add("failed_checks", [](const ArmResult& arm) { return text(failed_checks(arm)); });
  columns.add("flags", [](const ArmResult& arm) { return text(codes(arm.flags)); });
  return std::move(columns.sheet);
}

Sheet about_sheet(const Results& results) {
  Sheet sheet{.name = "about", .head = {"what", "value"}};
  const auto add = [&](const std::string& what, Cell value) {
    sheet.rows.push_back({what, std::move(value)});
  };
  add("title", text(results.title));
  add("experiment", text(results.file));
  add("made", text(results.made));
  add("program", text(results.version + (results.commit.empty() ? "" : " (" + results.commit + ")")));
  add("quality is", text(results.measure.name + ", " + results.measure.split + " split"));
  add("advice", text(results.advice.sentence));
  add("", text(results.advice.paragraph));
  for (const Note& note : results.notes) add("note", text(note.text));
  for (const ArmResult& arm : results.arms) {
    for (const Check& check : arm.checks) {
      if (!check.ok) add("left out: " + arm.name, text(check.text));
    }
    for (const Flag& flag : arm.flags) add(flag.code + ": " + arm.name, text(flag.text));
  }
  for (const auto& [name, value] : results.common) add(name, setting(value));
  return sheet;
}

}  // namespace syncopate::report
