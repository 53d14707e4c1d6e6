#include "syncopate/lab/tuning_rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::lab {

bool TuningRounds::round_ended() const {
  return std::all_of(plan_.runs.begin(), plan_.runs.end(),
                     [](const SweepRun& run) { return run.kind != RunKind::kTune || run.ended(); });
}

void TuningRounds::next(const std::function<void(const std::string&)>& say) {
  const size_t before = plan_.runs.size();
  for (Tuning& tuning : plan_.tunings) {
    take_scores(tuning);
    tuning.choose();
    if (round_ >= experiment_.tune->refine) continue;
    for (const double value : finer_values(tuning)) plan_.add_trial(experiment_, tuning, value, true);
  }
  ++round_;
  if (plan_.runs.size() > before) return;
  for (const Tuning& tuning : plan_.tunings) conclude(tuning, say);
  over_ = true;
}

void TuningRounds::take_scores(Tuning& tuning) const {
  tuning.failed = std::count_if(plan_.runs.begin(), plan_.runs.end(), [&](const SweepRun& run) {
    return run.kind == RunKind::kTune && run.arm == tuning.arm && run.ended() && !run.in_order();
  });
  for (const SweepRun& run : plan_.runs) {
    if (run.kind != RunKind::kTune || run.arm != tuning.arm || !run.score) continue;
    spec::RunSpec spec = run.spec;
    const Fields fields = spec.fields();
    Trial& trial = tuning.at(parse_number(Fields::text_of(fields.find(tuning.setting))).value_or(0));
    for (size_t i = 0; i < trial.seeds.size(); ++i) {
      if (trial.seeds[i] != run.seed()) continue;
      trial.scores[i] = run.score->value;
      trial.losses[i] = run.score->loss;
    }
    tuning.measure = run.score->measure;
  }
}

void TuningRounds::conclude(const Tuning& tuning, const std::function<void(const std::string&)>& say) {
  const std::string& name = experiment_.arms[tuning.arm].name;
  const std::string what = in_name({tuning.setting, ""});  // "lr "
  if (!tuning.best) {
    give_up(tuning);
    say(fmt::format("warning: {}: its tuning came to no result; it is left out", name));
    return;
  }
  plan_.settle(experiment_, tuning);
  const auto scored = std::count_if(tuning.trials.begin(), tuning.trials.end(),
                                    [](const Trial& trial) { return trial.mean().has_value(); });
  say(fmt::format("{}: {}{:g} is best of {} on the validation split{}", name, what, *tuning.best, scored,
                  tuning.failed > 0 ? fmt::format("; {} failed", tuning.failed) : ""));
  if (tuning.failed > 0) {
    say(fmt::format(
        "warning: {}: {} of its tuning runs failed, and another {}might have been chosen; the same command "
        "runs {} again",
        name, tuning.failed, what, tuning.failed == 1 ? "it" : "them"));
  }
  if (tuning.edge.empty()) return;
  const bool low = tuning.edge == "low";
  say(fmt::format("warning: {}: the best {}is the {} of those tried; add {} ones to [tune]", name, what,
                  low ? "smallest" : "largest", low ? "smaller" : "larger"));
}

void TuningRounds::give_up(const Tuning& tuning) {
  const auto cause = std::find_if(plan_.runs.begin(), plan_.runs.end(), [&](const SweepRun& run) {
    return run.kind == RunKind::kTune && run.arm == tuning.arm && !run.in_order();
  });
  const bool failed = cause != plan_.runs.end();
  const std::string message = failed ? "its tuning failed: " + cause->message
                                     : "no value was good with every seed of its tuning: runs diverged";
  const int code = failed ? cause->exit_code : static_cast<int>(ExitCode::kDiverged);
  for (SweepRun& run : plan_.runs) {
    if (!run.timed() || run.arm != tuning.arm) continue;
    run.state = failed ? RunState::kFailed : RunState::kDiverged;
    run.exit_code = code;
    run.message = message;
  }
}

}  // namespace syncopate::lab
