#include "syncopate/lab/sweep.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/base/version.h"
#include "syncopate/lab/inputs.h"
#include "syncopate/lab/outlook.h"
#include "syncopate/lab/reuse.h"
#include "syncopate/lab/sweep_file.h"
#include "syncopate/record/run_folder.h"

namespace syncopate::lab {
namespace {

namespace fs = std::filesystem;
constexpr int kLookMs = 30;
constexpr double kWriteSeconds = 0.5;  ///< sweep.json of ten thousand runs takes its time

bool good(RunState state) { return state == RunState::kDone || state == RunState::kDiverged; }

std::string quality_of(const record::RunRecord& record, RunKind kind) {
  const auto& eval = kind == RunKind::kTune ? record.validation : record.eval;
  if (!eval) return "";
  const std::string measure = record::main_measure(*eval);
  if (measure.empty()) return "";
  return fmt::format(", {} {}{}", measure, record::measure_for_people(measure, eval->measures.at(measure)),
                     kind == RunKind::kTune ? " on validation" : "");
}

class Sweep {
 public:
  Sweep(const Experiment& experiment, const fs::path& out, const SweepOptions& options, Runner* runner)
      : experiment_(experiment),
        options_(options),
        runner_(runner),
        plan_(make_plan(experiment, out)),
        former_(former_runs(out)),
        book_(out / "inputs.json"),
        progress_(options.progress, 0, "run") {
    head_.began = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  }

  /// Marks what is done already.
  void survey() {
    for (SweepRun& run : plan_.runs) look_for(run);
    for (round_ = 0; !plan_.tunings.empty() && tuning_ended(); ++round_) {
      if (!refine()) break;
    }
  }
  Plan take_plan() { return std::move(plan_); }

  SweepResult run() {
    survey();
    write();
    run_all(runs_of({RunKind::kPhase}));
    if (tuned_) tell_reused(runs_of({RunKind::kTune}));
    if (!tuned_) tune();
    run_all(rows_by_seed());
    const bool stopped = stopping_;
    head_.state = stopped ? "stopped" : "finished";
    write();
    book_.save();
    progress_.clear();
    SweepResult result{.plan = std::move(plan_)};
    const auto fine = [](const SweepRun& run) { return !run.timed() || good(run.state); };
    if (stopped) {
      result.exit_code = static_cast<int>(ExitCode::kInterrupted);
    } else if (!std::all_of(result.plan.runs.begin(), result.plan.runs.end(), fine)) {
      result.exit_code = first_failure_;
    }
    return result;
  }

 private:
  struct Active {
    size_t index;
    std::unique_ptr<RunInProgress> process;
    std::vector<int> cores;
    Stopwatch clock{};
    /// Its steps when they were first and last heard of, and when that was.
    RunInProgress::Steps first{}, last{};
    double first_at = 0, last_at = 0;

    void listen() {
      const auto steps = process->steps();
      if (!steps || steps->done == last.done) return;
      last = *steps;
      last_at = clock.seconds();
      if (first.of > 0) return;
      first = last;
      first_at = last_at;
    }
    std::string progress() const {
      return last.of > 0 ? fmt::format(", step {}/{}", last.done, last.of) : "";
    }
    /// By its steps since the first; none: too few are known.
    std::optional<double> seconds_left() const {
      if (last.done <= first.done) return std::nullopt;
      const double each = (last_at - first_at) / static_cast<double>(last.done - first.done);
      return std::max(0.0, static_cast<double>(last.of - last.done) * each - (clock.seconds() - last_at));
    }
  };

  // ---- what is to be done

  std::vector<size_t> runs_of(std::initializer_list<RunKind> kinds) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      if (std::find(kinds.begin(), kinds.end(), plan_.runs[i].kind) != kinds.end()) found.push_back(i);
    }
    return found;
  }

  /// All arms with their first seed, then all with their second: what there is early is a comparison, and a
  /// machine that grows slower over the day does so for all.
  std::vector<size_t> rows_by_seed() const {
    std::vector<std::pair<size_t, size_t>> order;
    std::map<size_t, size_t> count;
    for (const size_t i : runs_of({RunKind::kRow, RunKind::kControl}))
      order.emplace_back(count[plan_.runs[i].arm]++, i);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<size_t> rows;
    for (const auto& [turn, index] : order) rows.push_back(index);
    return rows;
  }

  // ---- tuning

  bool tuning_ended() const {
    return std::all_of(plan_.runs.begin(), plan_.runs.end(),
                       [](const SweepRun& run) { return run.kind != RunKind::kTune || run.ended(); });
  }

  /// After a round: chooses, and adds finer values where that is asked for. False: it is over, and the rows
  /// have their values.
  bool refine() {
    bool more = false;
    for (Tuning& tuning : plan_.tunings) {
      take_scores(tuning);
      tuning.choose();
      if (round_ >= experiment_.tune->refine) continue;
      const size_t before = plan_.runs.size();
      for (const double value : finer_values(tuning)) plan_.add_trial(experiment_, tuning, value, true);
      for (size_t i = before; i < plan_.runs.size(); ++i) look_for(plan_.runs[i]);
      more = more || plan_.runs.size() > before;
    }
    if (more) return true;
    for (const Tuning& tuning : plan_.tunings) conclude_tuning(tuning);
    tuned_ = true;
    return false;
  }

  void tune() {
    for (bool more = !plan_.tunings.empty(); more; ++round_) {
      run_all(runs_of({RunKind::kTune}));
      if (stopping_) return;
      more = refine();
      write();
    }
  }

  void take_scores(Tuning& tuning) {
    for (const SweepRun& run : plan_.runs) {
      if (run.kind != RunKind::kTune || run.arm != tuning.arm || !run.score) continue;
      spec::RunSpec spec = run.spec;
      const auto value = parse_number(Fields::text_of(spec.fields().find(tuning.setting)));
      Trial& trial = tuning.at(value.value_or(0));
      for (size_t i = 0; i < trial.seeds.size(); ++i) {
        if (trial.seeds[i] != run.seed()) continue;
        trial.scores[i] = run.score->value;
        trial.losses[i] = run.score->loss;
      }
      tuning.measure = run.score->measure;
    }
  }

  void conclude_tuning(const Tuning& tuning) {
    const std::string& name = experiment_.arms[tuning.arm].name;
    const std::string what = in_name({tuning.setting, ""});
    if (tuning.best) {
      plan_.settle(experiment_, tuning);
      say(fmt::format("{}: {}{:g} is best of {} on the validation split", name, what, *tuning.best,
                      tuning.trials.size()));
      if (!tuning.edge.empty()) {
        say(fmt::format("warning: {}: the best {}is the {} of those tried; add {} ones to [tune]", name, what,
                        tuning.edge == "low" ? "smallest" : "largest",
                        tuning.edge == "low" ? "smaller" : "larger"));
      }
      for (SweepRun& run : plan_.runs) {
        if (run.timed() && run.arm == tuning.arm && !run.ended()) look_for(run);
      }
      return;
    }
    // Nothing to choose from: its rows end as its tuning did.
    const SweepRun* cause = nullptr;
    for (const SweepRun& run : plan_.runs) {
      if (run.kind != RunKind::kTune || run.arm != tuning.arm || good(run.state)) continue;
      if (cause == nullptr) cause = &run;
    }
    for (SweepRun& run : plan_.runs) {
      if (!run.timed() || run.arm != tuning.arm) continue;
      run.state = cause == nullptr ? RunState::kDiverged : RunState::kFailed;
      run.exit_code = cause == nullptr ? static_cast<int>(ExitCode::kDiverged) : cause->exit_code;
      run.message = cause == nullptr ? "no value was good with every seed of its tuning: runs diverged"
                                     : "its tuning failed: " + cause->message;
    }
    say(fmt::format("warning: {}: its tuning came to no result; it is left out", name));
  }

  // ---- what is there already

  /// Whether the run is there, done. With `begin` what is outdated is set aside, and `resume` says whether
  /// there is something to go on from.
  bool look_for(SweepRun& run, bool begin = false, bool* resume = nullptr) {
    if (!run.settled || run.ended()) return run.ended();
    if (run.start && plan_.runs[*run.start].state != RunState::kDone) return false;
    const Fingerprints inputs = book_.now(run.spec);
    Found found = look_into(plan_.out, run.folder, run.spec, inputs, book_);
    if (found.what == Finding::kDone && found.other_version && options_.again)
      found = {.what = Finding::kOutdated, .why = "another version of the program made it"};
    const auto before = former_.find(run.folder);
    if (before != former_.end()) run.alone = before->second.alone;
    if (found.what == Finding::kDone) {
      run.reused = true;
      run.other_version = found.other_version;
      book_.note(run.folder, inputs);
      accept(run, *found.record);
      run.seconds = found.seconds;
      outlook_.took(run, run.seconds);
      return true;
    }
    if (found.what != Finding::kOutdated && diverged_before(run, inputs)) return true;
    if (!begin) return false;
    if (found.what == Finding::kOutdated) {
      say(fmt::format("{}: runs again, for {}; what was there is in {}", run.label(), found.why,
                      set_aside(plan_.out, run.folder).string()));
    }
    run.alone = true;
    *resume = found.what == Finding::kUnfinished;
    book_.note(run.folder, inputs);
    book_.save();  // before it begins: it may be killed at any time
    return false;
  }

  /// The same program on the same data diverges again.
  bool diverged_before(SweepRun& run, const Fingerprints& inputs) const {
    const auto before = former_.find(run.folder);
    if (before == former_.end() || before->second.state != name_of(RunState::kDiverged)) return false;
    if (before->second.version != program_version() || before->second.commit != program_commit())
      return false;
    if (book_.of_run(run.folder).value_or(Fingerprints()) != inputs) return false;
    run.state = RunState::kDiverged;
    run.reused = true;
    run.exit_code = before->second.exit_code;
    run.message = before->second.message;
    return true;
  }

  void accept(SweepRun& run, const record::RunRecord& record) {
    run.state = RunState::kDone;
    run.exit_code = 0;
    run.message.clear();
    if (run.kind == RunKind::kTune) run.score = validation_score(record);
  }

  // ---- running

  void run_all(const std::vector<size_t>& indices) {
    std::vector<size_t> waiting;
    for (const size_t i : indices) {
      if (!plan_.runs[i].ended()) waiting.push_back(i);
    }
    tell_reused(indices);
    while (!waiting.empty() || !active_.empty()) {
      heed_wishes();
      if (stopping_) waiting.clear();
      start_some(waiting);
      look_at_active();
      show();
      write_if_due();
      if (!active_.empty()) ::poll(nullptr, 0, kLookMs);  // a signal cuts it short
    }
  }

  void tell_reused(const std::vector<size_t>& indices) {
    size_t count = 0, other = 0;
    for (const size_t i : indices) {
      count += plan_.runs[i].reused ? 1 : 0;
      other += plan_.runs[i].reused && plan_.runs[i].other_version ? 1 : 0;
    }
    if (count == 0) return;
    say(fmt::format("{} of {} {} done before", count, indices.size(),
                    indices.size() == 1 ? "run was" : "runs were"));
    if (other > 0) {
      say(fmt::format("warning: {} of them made by another version of the program; --again runs them again",
                      other));
    }
  }

  void heed_wishes() {
    if (options_.pause_requested()) {
      for (Active& each : active_) each.process->pause(true);
      ::raise(SIGSTOP);
      for (Active& each : active_) each.process->pause(false);
    }
    if (stopping_ || !options_.stop_requested()) return;
    stopping_ = true;
    if (!active_.empty()) say("stopping: the runs that go on save what they have");
    for (Active& each : active_) each.process->stop();
  }

  void start_some(std::vector<size_t>& waiting) {
    for (size_t k = 0; k < waiting.size() && !stopping_;) {
      SweepRun& run = plan_.runs[waiting[k]];
      if (run.start && !plan_.runs[*run.start].ended()) {
        ++k;
        continue;
      }
      if (active_.size() >= static_cast<size_t>(std::max(1, options_.jobs))) return;
      std::vector<int> cores;
      if (!place_for(run, cores)) return;
      const size_t index = waiting[k];
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(k));
      begin(index, std::move(cores));
    }
  }

  /// Whether it may start now beside what goes on, and on which cores; none: on any.
  bool place_for(const SweepRun& run, std::vector<int>& cores) {
    if (options_.jobs <= 1) return active_.empty();
    const auto need = static_cast<size_t>(cores_for(run.spec, static_cast<int64_t>(options_.cores.size())));
    std::vector<int> free = options_.cores;
    bool all_pinned = true;
    for (const Active& each : active_) {
      all_pinned = all_pinned && !each.cores.empty();
      std::erase_if(free, [&](int core) {
        return std::find(each.cores.begin(), each.cores.end(), core) != each.cores.end();
      });
    }
    const bool pinned = all_pinned && need <= free.size();
    if (pinned) cores.assign(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(need));
    if (!run.timed()) return true;
    const bool shares = 2 * need <= options_.cores.size() && run.spec.compute.device == "cpu";
    if (!shares) cores.clear();  // it has the machine to itself
    if (!shares && !active_.empty() && !std::exchange(told_turns_, true))
      say(fmt::format("rows take turns: each needs {} of {} cores", need, options_.cores.size()));
    return active_.empty() || (shares && pinned);
  }

  void begin(size_t index, std::vector<int> cores) {
    SweepRun& run = plan_.runs[index];
    if (run.start && plan_.runs[*run.start].state != RunState::kDone) {
      const SweepRun& phase = plan_.runs[*run.start];
      const int code = phase.exit_code != 0 ? phase.exit_code : static_cast<int>(ExitCode::kData);
      fail(run, RunState::kFailed, code,
           fmt::format("the {} that it starts from {}: {}", phase.label(), name_of(phase.state),
                       phase.message));
      return;
    }
    bool resume = false;
    try {
      if (look_for(run, true, &resume)) return;
    } catch (const Error& error) {
      fail(run, RunState::kFailed, static_cast<int>(error.code()), error.what());
      return;
    }
    if (run.timed() && !active_.empty() && !std::exchange(told_sides_, true))
      say("rows run side by side, each on cores of its own; their timing is marked");
    for (const Active& each : active_) plan_.runs[each.index].alone = false;
    run.alone = active_.empty();
    const Launch launch{.spec = run.spec,
                        .folder = plan_.out / run.folder,
                        .resume = resume,
                        .cores = cores,
                        .log = log_of(run)};
    active_.push_back({.index = index, .process = runner_->start(launch), .cores = std::move(cores)});
    run.state = RunState::kRunning;
    changed_ = true;
  }

  void look_at_active() {
    for (size_t k = 0; k < active_.size();) {
      const auto ending = active_[k].process->look();
      if (!ending) {
        ++k;
        continue;
      }
      const Active ended = std::move(active_[k]);
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(k));
      conclude(plan_.runs[ended.index], *ending, ended.clock.seconds());
    }
  }

  void conclude(SweepRun& run, const Ending& ending, double seconds) {
    changed_ = true;
    run.seconds = seconds;
    for (std::string note : ending.notes) {
      // Of a phase's folder people know the phase.
      const std::string start = run.start ? run.spec.model.init_from : "";
      for (size_t at = note.find(start); !start.empty() && at != std::string::npos; at = note.find(start))
        note.replace(at, start.size(), "phase " + plan_.runs[*run.start].row);
      if (notes_.insert(note).second) say(fmt::format("note: {}: {}", run.label(), note));
    }
    if (ending.exit_code == 0) {
      conclude_done(run, seconds);
    } else if (ending.exit_code == static_cast<int>(ExitCode::kDiverged)) {
      fail(run, RunState::kDiverged, ending.exit_code, ending.message);
    } else if (ending.exit_code == static_cast<int>(ExitCode::kInterrupted) ||
               (stopping_ && ending.signal != 0)) {
      const std::string message = stopping_ ? "" : "it was interrupted";
      fail(run, stopping_ ? RunState::kStopped : RunState::kKilled, ending.exit_code, message);
    } else {
      fail(run, ending.signal != 0 ? RunState::kKilled : RunState::kFailed, ending.exit_code, ending.message);
    }
  }

  void conclude_done(SweepRun& run, double seconds) {
    const record::RunFolder folder{plan_.out / run.folder};
    try {
      const auto record =
          record::run_from_json(nlohmann::ordered_json::parse(read_file(folder.result(), "result")));
      accept(run, record);
      outlook_.took(run, seconds);
      remove_log(run);
      say(fmt::format("{} {}: {}{}", count(), run.label(), duration_for_people(seconds),
                      quality_of(record, run.kind)));
    } catch (const std::exception& error) {
      fail(run, RunState::kFailed, static_cast<int>(ExitCode::kData), first_line(error.what()));
    }
  }

  fs::path log_of(const SweepRun& run) const { return plan_.out / (run.folder + ".log"); }
  void remove_log(const SweepRun& run) const {
    std::error_code ignored;
    fs::remove(log_of(run), ignored);
  }

  void fail(SweepRun& run, RunState state, int code, const std::string& message) {
    run.state = state;
    run.exit_code = code;
    run.message = message;
    changed_ = true;
    if (state == RunState::kStopped) remove_log(run);
    if (!good(state) && state != RunState::kStopped && first_failure_ == 0) first_failure_ = code;
    say(fmt::format("{} {}: {}{}", count(), run.label(), name_of(state),
                    message.empty() ? "" : ": " + message));
  }

  // ---- telling

  std::string count() const {
    const auto ended =
        std::count_if(plan_.runs.begin(), plan_.runs.end(), [](const SweepRun& run) { return run.ended(); });
    return fmt::format("[{}/{}]", ended, plan_.runs.size());
  }

  void say(const std::string& line) {
    progress_.clear();
    options_.say(line);
  }

  void show() {
    if (options_.progress == Progress::Style::kNone || active_.empty()) return;
    const auto ended =
        std::count_if(plan_.runs.begin(), plan_.runs.end(), [](const SweepRun& run) { return run.ended(); });
    std::vector<std::string> details;
    constexpr double kSeldom = 1;
    if (!left_ || since_estimated_.seconds() > kSeldom) {
      left_ = seconds_left();
      since_estimated_.restart();
    }
    if (left_) details.push_back(duration_for_people(*left_) + " left");
    for (Active& each : active_) {
      each.listen();
      details.push_back(plan_.runs[each.index].label() + each.progress());
    }
    progress_.expect(static_cast<int64_t>(plan_.runs.size()));
    progress_.update(ended, ended, details);
  }

  /// None while nothing is known.
  std::optional<double> seconds_left() {
    double left = 0;
    for (const SweepRun& run : plan_.runs) {
      if (run.state != RunState::kPlanned) continue;
      const auto expected = outlook_.expected(run);
      if (!expected) return std::nullopt;
      left += *expected / (run.timed() ? 1 : std::max(1, options_.jobs));
    }
    double longest = 0;
    for (const Active& each : active_) {
      const auto by_steps = each.seconds_left();
      const auto expected = outlook_.expected(plan_.runs[each.index]);
      if (!by_steps && !expected) return std::nullopt;
      longest = std::max(longest, by_steps ? *by_steps : *expected - each.clock.seconds());
    }
    return left + longest;
  }

  void write_if_due() {
    if (changed_ && since_written_.seconds() > kWriteSeconds) write();
  }

  void write() {
    write_file_atomically(plan_.out / "sweep.json", sweep_text(experiment_, plan_, head_));
    changed_ = false;
    since_written_.restart();
  }

  const Experiment& experiment_;
  const SweepOptions& options_;
  Runner* runner_;
  Plan plan_;
  std::map<std::string, FormerRun> former_;
  InputBook book_;
  Outlook outlook_;
  Progress progress_;
  SweepHead head_;
  std::vector<Active> active_;
  std::set<std::string> notes_;
  bool stopping_ = false, changed_ = false, told_sides_ = false, told_turns_ = false, tuned_ = false;
  int first_failure_ = 0;
  int64_t round_ = 0;  ///< of tuning
  Stopwatch since_written_, since_estimated_;
  std::optional<double> left_;
};

}  // namespace

int64_t cores_for(const spec::RunSpec& spec, int64_t all) {
  const int64_t processes = spec.comm.workers + spec.servers();
  return processes * (spec.compute.threads > 0 ? spec.compute.threads : processes > 1 ? 1 : all);
}

SweepResult sweep(const Experiment& experiment, const fs::path& out, const SweepOptions& options,
                  Runner& runner) {
  make_folder(out);
  return Sweep(experiment, out, options, &runner).run();
}

Plan survey(const Experiment& experiment, const fs::path& out, bool again) {
  const SweepOptions options{.again = again};
  Sweep sweep(experiment, out, options, nullptr);
  sweep.survey();
  return sweep.take_plan();
}

}  // namespace syncopate::lab
