// What readers should know before they believe a figure.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/report/analysis/comparison.h"
#include "syncopate/report/words.h"

namespace syncopate::report {
namespace {

class ArmFlags {
 public:
  ArmFlags(Comparison& of, size_t arm) : of_(of), index_(arm), arm_(of.results.arms[arm]) {}

  void raise() {
    if (arm_.simulated) add("simulated", "simulated: nothing was trained or timed");
    ended_badly();
    speed();
    seeds();
    if (arm_.tuning && !arm_.tuning->edge.empty()) {
      const bool high = arm_.tuning->edge == "high";
      add("rate-at-edge",
          fmt::format("the best {} found, {:g}, is the {} that was tried: a {} one may be better",
                      arm_.tuning->setting, arm_.tuning->best, high ? "highest" : "lowest",
                      high ? "higher" : "lower"));
    }
  }

  void timing() {
    const std::string loaded = seeds_where(
        [](const RunResult& run) { return run.state == "done" && busy(run.outside_load, run.cores); });
    if (!loaded.empty()) {
      double load = 0, count = 0;
      for (const size_t place : of_.places[index_]) {
        const RunResult& run = of_.results.runs[place];
        if (run.state != "done" || !busy(run.outside_load, run.cores)) continue;
        load += run.outside_load;
        ++count;
      }
      add("busy",
          fmt::format(
              "others kept {:.1f} cores of the machine busy (mean) in {}: its timing cannot be trusted",
              load / count, loaded));
    }
    const std::string late =
        seeds_where([](const RunResult& run) { return run.state == "done" && run.late && !run.simulated; });
    if (!late.empty())
      add("late", fmt::format("the machine was too busy to emulate the network in {}{}: its timing does not "
                              "count",
                              late, lateness()));
    const std::string together =
        seeds_where([](const RunResult& run) { return run.state == "done" && !run.alone; });
    if (!together.empty())
      add("side-by-side",
          fmt::format("other runs of the sweep ran at the same time as {}: its timing cannot be trusted",
                      together));
    const size_t base = of_.speed_base[index_];
    const RunData* measured = base == Comparison::kNone ? nullptr : of_.any_done(base);
    const std::string other = seeds_where([&](const RunResult& run) {
      if (run.state != "done") return false;
      if (run.other_version) return true;
      if (measured == nullptr) return false;
      const record::Provenance& from = measured->files->record->provenance;
      return run.version != from.version || run.commit != from.commit;
    });
    if (!other.empty())
      add("other-version", fmt::format("{} made by another version of the program: timing cannot be compared",
                                       other.starts_with("seeds") ? other + " were" : other + " was"));
  }

 private:
  /// How late packets were in the worst of its runs; empty: nobody counted.
  std::string lateness() const {
    double worst = kUnknown;
    for (const RunData* run : of_.runs[index_]) {
      if (run->done() && run->files->record->network && !run->files->record->network->trustworthy)
        worst = std::fmax(worst, run->files->record->network->late_ms_p99);
    }
    return std::isfinite(worst) ? fmt::format(" (1 packet in 100 was more than {:.3g} ms late)", worst) : "";
  }

  void add(const char* code, std::string text) { arm_.flags.push_back({code, std::move(text)}); }

  /// The seeds of the arm's runs for which it holds, as "seed 2" or "seeds 2 and 3"; empty: none.
  template <typename Holds>
  std::string seeds_where(const Holds& holds) const {
    std::vector<std::string> seeds;
    for (const size_t place : of_.places[index_]) {
      const RunResult& run = of_.results.runs[place];
      if (holds(run)) seeds.push_back(std::to_string(run.seed));
    }
    return seeds.empty() ? "" : seeds_named(seeds);
  }

  void ended_badly() {
    const std::string diverged = seeds_where([](const RunResult& run) { return run.state == "diverged"; });
    if (!diverged.empty()) add("diverged", diverged + " diverged: the loss was no longer a number");
    const auto failed = [](const RunResult& run) { return run.state == "failed" || run.state == "killed"; };
    const std::string lost = seeds_where(failed);
    if (!lost.empty()) {
      std::string why;
      for (const size_t place : of_.places[index_]) {
        const RunResult& run = of_.results.runs[place];
        if (failed(run) && why.empty()) why = run.message;
      }
      add("failed", lost + " failed" + (why.empty() ? "" : ": " + why));
    }
    const std::string stopped = seeds_where([](const RunResult& run) { return run.state == "stopped"; });
    if (!stopped.empty()) add("failed", stopped + " stopped before the end");
  }

  void speed() {
    const size_t base = of_.speed_base[index_];
    if (base == Comparison::kNone || base == index_ || !arm_.speedup.known()) return;
    const ArmResult& single = of_.results.arms[base];
    const double ideal = arm_.ideal_speedup(single);
    const double mean = arm_.speedup.mean;
    // As large a step as one that is called faster.
    const bool slower = mean < 0.98 && (arm_.speedup.n < 2 ? 1.1 * mean < 1 : arm_.speedup.high < 1);
    if (slower && arm_.timing_counts() && single.timed_fairly()) {
      add("slower", "slower than " + (single.workers == 1 ? "one worker" : single.name));
    }
    // To be faster than a pipeline, which has to wait for its own stages, needs no explanation.
    if (single.stages == 1 && mean > 1.02 * ideal && (arm_.speedup.n < 2 || arm_.speedup.low > ideal))
      add("superlinear", taken_apart(single, ideal));
  }

  /// Where a speed-up above the number of workers comes from.
  std::string taken_apart(const ArmResult& single, double ideal) const {
    std::string text = fmt::format("{} is more than the {} that {} can give", times_text(arm_.speedup.mean),
                                   times_text(ideal), workers_text(arm_.workers));
    const auto per_example = [](const ArmResult& arm) { return arm.parts.compute / arm.worker_share; };
    std::vector<std::string> reasons;
    const double fell = 1 - per_example(arm_) / per_example(single);
    if (fell > 0.02) {
      reasons.push_back(
          fmt::format("compute per example and worker fell by {:.0f} % ({:.3g} ms against {:.3g} ms)",
                      100 * fell, per_example(arm_), per_example(single)));
    }
    if (std::abs(arm_.worker_batch - single.worker_batch) > 0.5) {
      reasons.push_back(fmt::format("a worker takes {} examples at a time instead of {}",
                                    grouped(arm_.worker_batch), grouped(single.worker_batch)));
    }
    const RunData* ours = of_.any_done(index_);
    const RunData* theirs = of_.any_done(of_.speed_base[index_]);
    if (ours != nullptr && theirs != nullptr &&
        ours->files->record->threads != theirs->files->record->threads) {
      reasons.push_back(fmt::format("a worker has {} threads instead of {}", ours->files->record->threads,
                                    theirs->files->record->threads));
    }
    if (std::abs(arm_.global_batch - single.global_batch) > 0.5) {
      reasons.push_back(fmt::format("an optimizer step is made every {} examples instead of every {}",
                                    grouped(arm_.global_batch), grouped(single.global_batch)));
    }
    if (const double waited = single.parts.data - arm_.parts.data; waited > 0.05 * single.ms.mean)
      reasons.push_back(fmt::format("{} waited {:.1f} ms more for data", single.name, waited));
    if (single.has_flag("busy"))
      reasons.push_back(fmt::format("the machine was busy while {} ran", single.name));
    if (reasons.empty()) return text + "; the records do not say why: run both again, alone";
    return text + ": " + joined(reasons, "and");
  }

  void seeds() {
    if (arm_.quality.n == 1) add("one-seed", "one seed decides nothing about quality");
    if (!arm_.difference || arm_.difference->decided || arm_.difference->same) return;
    const Difference& difference = *arm_.difference;
    const ArmResult* against = of_.results.arm(difference.against);
    const std::string whom = against == nullptr ? "the baseline" : against->name;
    if (difference.n == 0) {
      add("undecided", fmt::format("no finished seed in common with {}: quality is not compared", whom));
    } else if (difference.n == 1) {
      add("undecided",
          fmt::format("one seed in common with {}: the difference of {} may be chance; run at least 3", whom,
                      difference_text(arm_.measure, difference)));
    } else if (!difference.enough) {
      add("undecided",
          fmt::format("{} against {} in {}, which may agree by chance: undecided; run at least {}",
                      difference_text(arm_.measure, difference), whom, seeds_text(difference.n),
                      std::max<int64_t>(3, difference.n + 1)));
    } else {
      add("undecided",
          fmt::format("{} against {} in {}: undecided; {}", difference_text(arm_.measure, difference), whom,
                      seeds_text(difference.n),
                      difference.seeds_needed
                          ? fmt::format("about {} would decide a difference of this size four times in five",
                                        seeds_text(*difference.seeds_needed))
                          : std::string("not even 1,000 seeds would decide a difference of this size")));
    }
  }

  Comparison& of_;
  size_t index_;
  ArmResult& arm_;
};

}  // namespace

void flag_timing(Comparison& of) {
  std::vector<std::string> unknown;
  for (size_t i = 0; i < of.results.arms.size(); ++i) {
    ArmFlags(of, i).timing();
    const bool silent = std::any_of(of.places[i].begin(), of.places[i].end(), [&](size_t place) {
      const RunResult& run = of.results.runs[place];
      return run.state == "done" && std::isnan(run.outside_load);
    });
    if (silent) unknown.push_back(of.results.arms[i].name);
  }
  if (unknown.empty()) return;
  of.results.notes.push_back(
      {.code = "load",
       .text = fmt::format("Load not known: whether others used the machine meanwhile is not recorded of {}.",
                           unknown.size() == of.results.arms.size() ? "any arm" : some_of(unknown)),
       .warning = false});
}

void raise_flags(Comparison& of) {
  for (size_t i = 0; i < of.results.arms.size(); ++i) ArmFlags(of, i).raise();
}

}  // namespace syncopate::report
