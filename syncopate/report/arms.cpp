// Which runs belong together, and what they are judged by.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "syncopate/base/text.h"
#include "syncopate/report/comparison.h"
#include "syncopate/report/plain_text.h"
#include "syncopate/report/traits.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

double positive(double value) { return value > 0 ? value : kUnknown; }

/// Settings that say nothing about what was trained: runs that differ in them alone are one arm.
bool says_nothing(std::string_view setting) {
  return setting == "train.seed" || setting == "train.save_every" || setting == "comm.timeout";
}

RunResult result_of(const RunData& run) {
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
  if (!run.done()) return r;
  const record::RunRecord& record = *files.record;
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
  return r;
}

/// Settings that are not the same in all runs of the comparison, and the values of those that are.
void tell_settings_apart(Results& results, const std::vector<const RunData*>& runs) {
  if (runs.empty()) return;
  struct Seen {
    const std::string* first;
    size_t count = 0;
    bool varies = false;
  };
  std::vector<std::string_view> names;
  std::unordered_map<std::string_view, Seen> seen;
  for (const RunData* run : runs) {
    for (const auto& [name, value] : run->files->settings) {
      const auto [found, fresh] = seen.try_emplace(name, Seen{&value});
      if (fresh) names.push_back(name);
      ++found->second.count;
      found->second.varies = found->second.varies || *found->second.first != value;
    }
  }
  for (const std::string_view name : names) {
    if (says_nothing(name)) continue;
    const Seen& setting = seen.at(name);
    if (setting.varies || setting.count < runs.size()) {
      results.varies.emplace_back(name);
    } else {
      results.common.emplace_back(name, *setting.first);
    }
  }
}

Settings chosen_settings(const RunFiles& files, const std::vector<std::string>& names) {
  Settings chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(files.settings.begin(), files.settings.end(),
                                    [&](const auto& setting) { return setting.first == name; });
    if (found != files.settings.end()) chosen.push_back(*found);
  }
  return chosen;
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// Arms of a folder of runs: by what their settings say, seeds apart. Gives each run its arm.
void group_by_settings(std::vector<RunResult>& runs, const std::vector<RunData>& data) {
  std::map<std::string, std::string> ids;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::string key;
    for (const auto& [name, value] : data[i].files->settings) {
      if (!says_nothing(name)) key += name + "=" + value + "\n";
    }
    if (key.empty()) key = data[i].folder;  // nothing is known of it
    if (runs[i].simulated) key += "simulated\n";
    const auto [found, fresh] = ids.emplace(key, fmt::format("a{}", ids.size()));
    runs[i].arm = found->second;
  }
}

/// `mixed`: some runs were simulated, others measured.
std::string label_of(const RunResult& run, bool mixed) {
  if (run.strategy.empty()) return run.folder;
  std::string label =
      run.codec.empty() || run.codec == "none" ? run.strategy : run.strategy + ", " + run.codec;
  if (run.stages > 1) label += ", " + stages_text(run.stages, run.activation_codec);
  return run.simulated && mixed ? label + ", simulated" : label;
}

/// What is added to an arm's name to tell it from its like.
std::string told_apart_by(const std::string& setting, const std::string& value) {
  if (setting == "comm.workers") return fmt::format(", {} workers", value);
  if (setting == "network.name") return ", on " + value;
  return fmt::format(", {} {}", last_part(setting), value);
}

/// Calls arms by strategy and codec, and where these are alike by the settings in which they differ.
void name_arms(Results& results) {
  std::map<std::string, std::vector<size_t>> alike;
  for (size_t i = 0; i < results.arms.size(); ++i) alike[results.arms[i].name].push_back(i);
  for (const auto& group : alike) {
    if (group.second.size() < 2) continue;
    for (const std::string& setting : results.varies) {
      if (setting == "strategy.name" || setting == "codec.name" || setting == "pipeline.stages" ||
          setting == "activation.codec")
        continue;
      std::set<std::string> values;
      const auto value_in = [&](size_t arm) {
        for (const auto& [name, value] : results.arms[arm].settings) {
          if (name == setting) return value;
        }
        return std::string();
      };
      for (const size_t arm : group.second) values.insert(value_in(arm));
      if (values.size() < 2) continue;
      for (const size_t arm : group.second) {
        const std::string value = value_in(arm);
        if (value.empty()) continue;
        results.arms[arm].name += told_apart_by(setting, value);
      }
    }
  }
}

std::string state_of(const std::vector<const RunData*>& runs) {
  const auto count = [&](auto holds) {
    return static_cast<size_t>(
        std::count_if(runs.begin(), runs.end(), [&](const RunData* run) { return holds(run->state); }));
  };
  const size_t done = count([](const std::string& state) { return state == "done"; });
  const size_t planned = count([](const std::string& state) { return state == "planned"; });
  if (count([](const std::string& state) { return state == "running"; }) > 0) return "running";
  if (planned > 0) return done > 0 ? "running" : "planned";
  return done > 0 ? "done" : "failed";
}

}  // namespace

void make_runs_and_arms(Comparison& of) {
  Results& results = of.results;
  const SweepData& sweep = of.sweep;
  results.title = sweep.title;
  results.file = sweep.file;
  results.state = sweep.state;
  results.target = sweep.target;
  results.notes = sweep.notes;
  results.axes = sweep.axes;
  results.omitted_curves = sweep.omitted_curves;
  results.advice_check = sweep.attached.advice;
  results.placements = sweep.attached.placements;
  for (const RunData& run : sweep.runs) results.runs.push_back(result_of(run));
  if (!sweep.planned) group_by_settings(results.runs, sweep.runs);
  const auto compared = [](const RunResult& run) { return run.kind == "row" || run.kind == "control"; };
  std::vector<const RunData*> all;
  for (size_t i = 0; i < results.runs.size(); ++i) {
    if (compared(results.runs[i]) && !sweep.runs[i].files->settings.empty()) all.push_back(&sweep.runs[i]);
  }
  tell_settings_apart(results, all);
  std::map<std::string, size_t> places;
  std::vector<std::string> again;
  std::vector<size_t> order(results.runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!sweep.planned) {  // nobody gave an order: the fewest workers first
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return results.runs[a].workers < results.runs[b].workers; });
  }
  const auto simulated = std::count_if(results.runs.begin(), results.runs.end(),
                                       [](const RunResult& run) { return run.simulated; });
  const bool mixed = simulated > 0 && static_cast<size_t>(simulated) < results.runs.size();
  for (const size_t i : order) {
    RunResult& run = results.runs[i];
    run.settings = chosen_settings(*sweep.runs[i].files, results.varies);
    if (!compared(run)) continue;
    const auto [at, fresh] = places.emplace(run.arm, results.arms.size());
    if (fresh) {
      ArmResult arm;
      arm.id = run.arm;
      arm.row = run.row;
      arm.kind = run.kind;
      arm.name = sweep.planned && !run.name.empty() ? run.name : label_of(run, mixed);
      arm.axes = run.axes;
      results.arms.push_back(std::move(arm));
      of.runs.emplace_back();
      of.places.emplace_back();
    }
    ArmResult& arm = results.arms[at->second];
    // A seed that was run twice says nothing new: it counts once, and the finished one.
    std::vector<const RunData*>& members = of.runs[at->second];
    const auto twin = std::find_if(members.begin(), members.end(),
                                   [&](const RunData* other) { return other->seed == sweep.runs[i].seed; });
    if (twin != members.end()) {
      again.push_back(run.folder);
      const auto place = static_cast<size_t>(twin - members.begin());
      if (!(*twin)->done() && sweep.runs[i].done()) {
        members[place] = &sweep.runs[i];
        of.places[at->second][place] = i;
        arm.runs[place] = run.id;
      }
      continue;
    }
    members.push_back(&sweep.runs[i]);
    of.places[at->second].push_back(i);
    arm.runs.push_back(run.id);
  }
  if (!again.empty()) {
    results.notes.push_back(
        {.code = "twins",
         .text =
             fmt::format("the same settings and seed as another run, so counted once: {}", some_of(again)),
         .warning = false});
  }
  for (size_t i = 0; i < results.arms.size(); ++i) {
    ArmResult& arm = results.arms[i];
    arm.state = state_of(of.runs[i]);
    for (size_t k = 0; k < of.runs[i].size(); ++k) {
      const RunResult& run = results.runs[of.places[i][k]];
      if (arm.settings.empty()) arm.settings = run.settings;
      if (!arm.strategy.empty() || run.strategy.empty()) continue;
      arm.strategy = run.strategy;
      arm.codec = run.codec;
      arm.workers = run.workers;
      arm.stages = run.stages;
      arm.activation_codec = run.activation_codec;
    }
    arm.family = family_of(arm.strategy, arm.codec, arm.kind, arm.stages);
    for (const TuningData& tuning : sweep.tunings) {
      if (tuning.arm == arm.id) arm.tuning = tuning.tuning;
    }
  }
  if (!sweep.planned) name_arms(results);
  for (size_t i = 0; i < results.arms.size(); ++i) {
    for (const size_t place : of.places[i]) results.runs[place].name = results.arms[i].name;
  }
}

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
