// Figures of an arm from those of its runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "syncopate/base/text.h"
#include "syncopate/record/bandwidth.h"
#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/traits.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

std::optional<Bandwidth> bandwidth_of(const std::vector<const RunData*>& runs, double link_gbit) {
  double bytes = 0, bus_bytes = 0, seconds = 0;
  for (const RunData* run : runs) {
    if (!run->done()) continue;
    const record::RunRecord& record = *run->files->record;
    for (const record::Collective& each : record.collectives) {
      bytes += each.bytes;
      const double factor = record::bus_factor(each.name, record.workers);
      bus_bytes += each.bytes * (std::isfinite(factor) ? factor : 1);
      seconds += each.seconds;
    }
  }
  if (!(seconds > 0) || !(bytes > 0)) return std::nullopt;
  Bandwidth result{.algorithm_gbit = 8e-9 * bytes / seconds, .bus_gbit = 8e-9 * bus_bytes / seconds};
  result.link_gbit = link_gbit;
  result.utilisation = result.bus_gbit / link_gbit;
  return result;
}

}  // namespace

void fill_figures(Comparison& of) {
  for (size_t i = 0; i < of.results.arms.size(); ++i) {
    ArmResult& arm = of.results.arms[i];
    const auto all = [&](auto value) {
      std::vector<double> values;
      for (const size_t place : of.places[i]) {
        const RunResult& run = of.results.runs[place];
        values.push_back(run.state == "done" ? value(run) : kUnknown);
      }
      return estimate(std::move(values));
    };
    const auto kind = [&](const char* name) {
      return all([&](const RunResult& run) {
               const auto found = run.bytes_by_kind.find(name);
               if (found != run.bytes_by_kind.end()) return found->second;
               return run.bytes_by_kind.empty() ? kUnknown : 0.0;
             })
          .mean;
    };
    arm.ms = all([](const RunResult& run) { return run.ms; });
    arm.ms_p50 = all([](const RunResult& run) { return run.ms_p50; }).mean;
    arm.ms_p95 = all([](const RunResult& run) { return run.ms_p95; }).mean;
    arm.parts = {.data = all([](const RunResult& run) { return run.parts.data; }).mean,
                 .forward = all([](const RunResult& run) { return run.parts.forward; }).mean,
                 .backward = all([](const RunResult& run) { return run.parts.backward; }).mean,
                 .compute = all([](const RunResult& run) { return run.parts.compute; }).mean,
                 .exchange = all([](const RunResult& run) { return run.parts.exchange; }).mean,
                 .optimizer = all([](const RunResult& run) { return run.parts.optimizer; }).mean,
                 .hidden = all([](const RunResult& run) { return run.parts.hidden; }).mean};
    arm.examples_per_s = all([](const RunResult& run) { return run.examples_per_s; });
    arm.train_seconds = all([](const RunResult& run) { return run.train_seconds; });
    arm.examples = all([](const RunResult& run) { return static_cast<double>(run.examples); }).mean;
    arm.updates = all([](const RunResult& run) { return static_cast<double>(run.steps); }).mean;
    arm.global_batch = all([](const RunResult& run) { return static_cast<double>(run.global_batch); }).mean;
    // Where workers run free, an update has one worker's examples already.
    const double sharers =
        rhythm_of(arm.strategy) == spec::Rhythm::kFree ? 1.0 : static_cast<double>(arm.replicas());
    arm.worker_share = arm.global_batch / sharers;
    if (const RunData* any = of.any_done(i)) {
      const double parts = parse_number(any->files->setting("train.accumulate")).value_or(1);
      arm.worker_batch = arm.worker_share / std::max(1.0, parts);
    }
    arm.peak_memory = all([](const RunResult& run) { return run.peak_memory; }).mean;
    arm.noise_scale = all([](const RunResult& run) { return run.noise_scale; }).mean;
    arm.outside_load = all([](const RunResult& run) { return run.outside_load; }).mean;
    arm.bytes = {.per_step = all([](const RunResult& run) { return run.bytes_per_step; }).mean,
                 .gradients = kind("gradients"),
                 .parameters = kind("parameters"),
                 .activations = kind("activations"),
                 .control = kind("control"),
                 .total_gib = all([](const RunResult& run) {
                                return run.bytes_per_step * static_cast<double>(run.steps) *
                                       static_cast<double>(run.workers) / (1 << 30);
                              }).mean};
    arm.bandwidth = bandwidth_of(of.runs[i], of.sweep.link_gbit);
    std::vector<double> epochs;
    for (const RunData* run : of.runs[i]) {
      if (!run->done()) continue;
      const record::RunRecord& record = *run->files->record;
      for (const record::EpochRecord& epoch : record.epochs) epochs.push_back(epoch.seconds);
      for (const auto& worker : record.staleness) {
        arm.staleness.resize(std::max(arm.staleness.size(), worker.size()));
        for (size_t k = 0; k < worker.size(); ++k) arm.staleness[k] += worker[k];
      }
      for (const record::EvalRecord& eval : record.worker_evals) {
        const auto found = eval.measures.find(arm.measure.name);
        if (found == eval.measures.end()) continue;
        arm.worker_low = std::fmin(arm.worker_low, found->second);
        arm.worker_high = std::fmax(arm.worker_high, found->second);
      }
    }
    arm.seconds_per_epoch = estimate(epochs).mean;
    if (std::isfinite(of.sweep.worker_hour) && arm.train_seconds.known()) {
      arm.price = Price{
          .value = of.sweep.worker_hour * static_cast<double>(arm.workers) * arm.train_seconds.mean / 3600,
          .currency = of.sweep.currency};
    }
  }
}

void fill_speed(Comparison& of) {
  for (size_t i = 0; i < of.results.arms.size(); ++i) {
    ArmResult& arm = of.results.arms[i];
    if (of.speed_base[i] == Comparison::kNone) continue;
    const ArmResult& base = of.results.arms[of.speed_base[i]];
    const RunData *ours = of.any_done(i), *theirs = of.any_done(of.speed_base[i]);
    if (i != of.speed_base[i] && base.excluded) continue;
    if (ours != nullptr && theirs != nullptr && !same_machine(*ours->files->record, *theirs->files->record)) {
      arm.words = fmt::format("not compared in speed: {} ran on another machine", base.name);
      continue;
    }
    if (arm.family == "simulated" && base.workers > 1) {  // its 1.0 would not be that of the others
      arm.words = "not compared in speed: no single worker was simulated";
      continue;
    }
    if (!same_network(arm, base)) {
      arm.words = fmt::format("not compared in speed: {} ran on another network", base.name);
      continue;
    }
    arm.speed_against = base.id;
    std::vector<double> factors;
    for (const size_t place : of.places[i]) {
      RunResult& run = of.results.runs[place];
      double against = base.examples_per_s.mean;
      for (const size_t other : of.places[of.speed_base[i]]) {
        const RunResult& twin = of.results.runs[other];
        if (twin.seed == run.seed && std::isfinite(twin.examples_per_s)) against = twin.examples_per_s;
      }
      run.speedup = run.examples_per_s / against;
      factors.push_back(run.speedup);
    }
    arm.speedup = estimate(std::move(factors));
    if (!arm.speedup.known()) continue;
    arm.efficiency = arm.speedup.mean / arm.ideal_speedup(base);
  }
  // How long the runs that go on will take: as many examples as those that are done, where nobody said.
  double examples = kUnknown;
  for (const RunResult& run : of.results.runs) {
    if (run.state == "done" && run.kind == "row")
      examples = std::fmax(examples, static_cast<double>(run.examples));
  }
  for (RunResult& run : of.results.runs) {
    if (!run.progress) continue;
    Progress& progress = *run.progress;
    const double seen = run.curve.examples.empty() ? kUnknown : run.curve.examples.back();
    if (progress.of == 0 && std::isfinite(examples) && seen > 0)
      progress.of = static_cast<int64_t>(std::ceil(static_cast<double>(progress.step) * examples / seen));
    if (progress.of > 0)
      progress.seconds_left =
          progress.step_seconds * static_cast<double>(std::max<int64_t>(0, progress.of - progress.step));
  }
}

void say_speed(Comparison& of) {
  for (size_t i = 0; i < of.results.arms.size(); ++i) {
    ArmResult& arm = of.results.arms[i];
    if (!arm.speedup.known()) continue;
    const ArmResult& base = of.results.arms[of.speed_base[i]];
    const std::string whom =
        base.workers == 1 ? "one worker" : fmt::format("{} ({})", base.name, workers_text(base.workers));
    const std::string factor = fmt::format("{} as fast as {}", times_text(arm.speedup.mean), whom);
    const bool open = arm.speedup.n > 1 && arm.speedup.low <= 1 && arm.speedup.high >= 1;
    const bool near = std::abs(arm.speedup.mean - 1) < (open ? 0.05 : 0.02);
    if (i == of.speed_base[i]) {
      arm.words = "what speed is measured against";
    } else if (!arm.timed_fairly() || !base.timed_fairly()) {
      arm.words = factor + ", but the timing does not count";
    } else if (arm.has_flag("busy") && arm.speedup.mean < 1.02) {
      arm.words = factor + " on a busy machine, so its speed is open";
    } else if (open && !near) {
      arm.words = fmt::format("{}, undecided in {}", factor, seeds_text(arm.speedup.n));
    } else if (near) {
      arm.words = fmt::format("about as fast as {} ({})", whom, times_text(arm.speedup.mean));
    } else if (arm.speedup.n < 2 && arm.speedup.mean < 1 && 1.1 * arm.speedup.mean >= 1) {
      arm.words = factor + " in one run";
    } else if (arm.speedup.mean < 1) {
      arm.words = fmt::format("slower than {} ({})", whom, times_text(arm.speedup.mean));
    } else {
      arm.words = factor;
    }
  }
}

}  // namespace syncopate::report
