#include "syncopate/lab/existing_runs.h"

#include <fmt/format.h>

#include "syncopate/base/version.h"

namespace syncopate::lab {

ExistingRuns::ExistingRuns(const std::filesystem::path& out, bool again)
    : out_(out), again_(again), former_(former_runs(out)), book_(out / "inputs.json") {
  for (const auto& [folder, run] : former_) {  // sweep.json will say it only of runs that are planned now
    Made made = book_.made(folder);
    made.alone = made.alone && run.alone;
    if (!made.alone) book_.note(folder, made);
  }
}

Found ExistingRuns::look(const SweepRun& run, const Fingerprints& inputs) {
  Found found = look_into(out_, run.folder, run.spec, inputs, book_);
  if (found.what == Finding::kDone && found.other_version && again_)
    return {.what = Finding::kOutdated, .why = "another version of the program made it"};
  return found;
}

bool ExistingRuns::find(SweepRun& run) {
  const Fingerprints inputs = book_.now(run.spec);
  const Found found = look(run, inputs);
  const Made made = book_.made(run.folder);
  const auto before = former_.find(run.folder);
  if (found.what == Finding::kDone) {
    book_.note(run.folder, inputs);
    accept(run, *found.record);
    run.reused = true;
    run.other_version = found.other_version;
    run.seconds = made.seconds > 0 ? made.seconds : found.seconds;
    run.alone = made.alone;
    return true;
  }
  return found.what != Finding::kOutdated && before != former_.end() && diverged(run, before->second, inputs);
}

/// The same program on the same data diverges again.
bool ExistingRuns::diverged(SweepRun& run, const FormerRun& before, const Fingerprints& inputs) const {
  if (before.state != name_of(RunState::kDiverged)) return false;
  if (before.version != program_version() || before.commit != program_commit()) return false;
  if (book_.of_run(run.folder).value_or(Fingerprints()) != inputs) return false;
  run.state = RunState::kDiverged;
  run.reused = true;
  run.alone = book_.made(run.folder).alone;
  run.exit_code = before.exit_code;
  run.message = before.message;
  return true;
}

ExistingRuns::Beginning ExistingRuns::begin(SweepRun& run) {
  const Fingerprints inputs = book_.now(run.spec);
  const Found found = look(run, inputs);
  Beginning beginning{.resume = found.what == Finding::kUnfinished, .init_from = found.init_from};
  if (found.what == Finding::kOutdated) {
    beginning.note = fmt::format("{}: runs again, for {}; what was there is in {}", run.label(), found.why,
                                 set_aside(out_, run.folder).string());
  }
  book_.note(run.folder, inputs);
  if (!beginning.resume) book_.note(run.folder, Made());
  run.alone = book_.made(run.folder).alone;
  return beginning;
}

void ExistingRuns::share(SweepRun& run) {
  run.alone = false;
  book_.note(run.folder, Made{.alone = false, .seconds = book_.made(run.folder).seconds});
}

double ExistingRuns::took(const SweepRun& run, double seconds) {
  Made made = book_.made(run.folder);
  made.seconds += seconds;
  book_.note(run.folder, made);
  return made.seconds;
}

void accept(SweepRun& run, const record::RunRecord& record) {
  run.state = RunState::kDone;
  run.exit_code = 0;
  run.message.clear();
  if (run.kind == RunKind::kTune) run.score = validation_score(record);
}

}  // namespace syncopate::lab
