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
#include "syncopate/lab/active_run.h"
#include "syncopate/lab/existing_runs.h"
#include "syncopate/lab/outlook.h"
#include "syncopate/lab/sweep_file.h"
#include "syncopate/lab/tuning_rounds.h"
#include "syncopate/record/run_folder.h"

namespace syncopate::lab {
namespace {

namespace fs = std::filesystem;
constexpr int kLookMs = 30;
constexpr double kWriteSeconds = 0.5;  ///< sweep.json of ten thousand runs takes its time

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
        existing_(out, options.again),
        rounds_(experiment, plan_),
        progress_(options.progress, 0, "run") {
    head_.began = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  }

  /// Marks what is done already.
  void survey() {
    look_for_all();
    while (!rounds_.over() && rounds_.round_ended()) next_round();
  }
  Plan take_plan() { return std::move(plan_); }

  SweepResult run() {
    survey();
    existing_.save();  // before sweep.json forgets runs that are not planned now
    write();
    run_all(runs_of({RunKind::kPhase}));
    if (rounds_.over()) tell_reused(runs_of({RunKind::kTune}));
    tune();
    run_all(rows_by_seed());
    const bool stopped = stopping_;
    head_.state = stopped ? "stopped" : "finished";
    write();
    existing_.save();
    progress_.clear();
    SweepResult result{.plan = std::move(plan_)};
    const auto fine = [](const SweepRun& run) { return run.in_order(); };
    if (stopped) {
      result.exit_code = static_cast<int>(ExitCode::kInterrupted);
    } else if (!std::all_of(result.plan.runs.begin(), result.plan.runs.end(), fine)) {
      result.exit_code = first_failure_;
    }
    return result;
  }

 private:
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

  void tune() {
    while (!rounds_.over() && !stopping_) {
      run_all(runs_of({RunKind::kTune}));
      if (!stopping_) next_round();
    }
  }

  void next_round() {
    rounds_.next([this](const std::string& line) { say(line); });
    look_for_all();
  }

  void look_for_all() {
    for (SweepRun& run : plan_.runs) {
      try {
        look_for(run);
      } catch (const std::exception&) {  // it will be told when its turn comes
      }
    }
  }

  /// Whether it has ended, here or before.
  bool look_for(SweepRun& run) {
    if (!run.settled || run.ended() || run.state == RunState::kRunning) return run.ended();
    if (run.same_as) return end_as(run, plan_.runs[*run.same_as]);
    if (run.start && plan_.runs[*run.start].state != RunState::kDone) return false;
    if (!existing_.find(run)) return false;
    outlook_.took(run, run.seconds);
    return true;
  }

  /// Tuning made it the same run as the other; whether that has ended.
  static bool end_as(SweepRun& run, const SweepRun& other) {
    if (!other.ended()) return false;
    run.state = other.state;
    run.exit_code = other.exit_code;
    run.message = other.message;
    run.reused = other.reused;
    run.other_version = other.other_version;
    run.alone = other.alone;
    run.seconds = other.seconds;
    return true;
  }

  // ---- running

  void run_all(const std::vector<size_t>& indices) {
    try {
      run_each(indices);
    } catch (...) {  // no room on the disk, say: the runs that go on end in order, with what they have
      for (ActiveRun& each : active_) each.process->stop();
      for (ActiveRun& each : active_) {
        while (!each.process->look()) ::poll(nullptr, 0, kLookMs);
      }
      throw;
    }
  }

  void run_each(const std::vector<size_t>& indices) {
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
      if (!plan_.runs[i].reused || !told_reused_.insert(i).second) continue;
      ++count;
      other += plan_.runs[i].other_version ? 1 : 0;
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
      for (ActiveRun& each : active_) each.process->pause(true);
      ::raise(SIGSTOP);
      for (ActiveRun& each : active_) each.process->pause(false);
    }
    if (stopping_ || !options_.stop_requested()) return;
    stopping_ = true;
    if (!active_.empty()) say("stopping: the runs that go on save what they have");
    for (ActiveRun& each : active_) each.process->stop();
  }

  void start_some(std::vector<size_t>& waiting) {
    for (size_t k = 0; k < waiting.size() && !stopping_;) {
      const size_t index = waiting[k];
      const SweepRun& run = plan_.runs[index];
      if (has_to_wait(run)) {
        ++k;
        continue;
      }
      Place place = place_for(run.spec, run.timed(), options_.jobs, options_.cores, active_);
      if (!place.free) {
        if (run.timed() && options_.jobs > 1 && !place.shares && !std::exchange(told_turns_, true))
          say(fmt::format("rows take turns: each needs {} of {} cores", place.need, options_.cores.size()));
        return;
      }
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(k));
      begin(index, std::move(place.cores));
    }
  }

  /// For its phase, or for another run of the same settings: arms that differ in their length alone are tuned
  /// by the same runs.
  bool has_to_wait(const SweepRun& run) const {
    if (run.start && !plan_.runs[*run.start].ended()) return true;
    if (run.same_as) return !plan_.runs[*run.same_as].ended();
    return std::any_of(active_.begin(), active_.end(),
                       [&](const ActiveRun& each) { return plan_.runs[each.index].folder == run.folder; });
  }

  void begin(size_t index, std::vector<int> cores) {
    SweepRun& run = plan_.runs[index];
    if (run.same_as) {
      const SweepRun& other = plan_.runs[*run.same_as];
      end_as(run, other);
      changed_ = true;
      say(fmt::format("{} {}: the same run as {}", count(), run.label(), other.label()));
      return;
    }
    if (run.start && plan_.runs[*run.start].state != RunState::kDone) {
      const SweepRun& phase = plan_.runs[*run.start];
      const int code = phase.exit_code != 0 ? phase.exit_code : static_cast<int>(ExitCode::kData);
      fail(run, RunState::kFailed, code,
           fmt::format("the {} that it starts from {}: {}", phase.label(), name_of(phase.state),
                       phase.message));
      return;
    }
    try {
      if (!look_for(run)) start(index, std::move(cores));
    } catch (const Error& error) {
      fail(run, RunState::kFailed, static_cast<int>(error.code()), error.what());
    } catch (const fs::filesystem_error& error) {
      fail(run, RunState::kFailed, static_cast<int>(ExitCode::kData),
           fmt::format("cannot read or write {}: {}", error.path1().string(), error.code().message()));
    } catch (const std::exception& error) {  // of the system: no more processes, say
      fail(run, RunState::kFailed, static_cast<int>(ExitCode::kInternal),
           fmt::format("it could not be started: {}", first_line(error.what())));
    }
  }

  void start(size_t index, std::vector<int> cores) {
    SweepRun& run = plan_.runs[index];
    const ExistingRuns::Beginning beginning = existing_.begin(run);
    if (!beginning.note.empty()) say(beginning.note);
    if (run.timed() && !active_.empty() && !std::exchange(told_sides_, true))
      say("rows run side by side, each on cores of its own; their timing is marked");
    for (const ActiveRun& each : active_) existing_.share(plan_.runs[each.index]);
    if (!active_.empty()) existing_.share(run);
    existing_.save();  // it may be killed at any time
    Launch launch{.spec = run.spec,
                  .folder = plan_.out / run.folder,
                  .resume = beginning.resume,
                  .cores = cores,
                  .log = log_of(run)};
    if (beginning.resume) launch.spec.model.init_from = beginning.init_from;
    active_.push_back({.index = index, .process = runner_->start(launch), .cores = std::move(cores)});
    run.state = RunState::kRunning;
    changed_ = true;
  }

  void look_at_active() {
    for (size_t k = 0; k < active_.size();) {
      std::optional<Ending> ending;
      try {
        ending = active_[k].process->look();
      } catch (const std::exception& error) {
        ending =
            Ending{.exit_code = static_cast<int>(ExitCode::kInternal), .message = first_line(error.what())};
      }
      if (!ending) {
        ++k;
        continue;
      }
      const ActiveRun ended = std::move(active_[k]);
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(k));
      conclude(plan_.runs[ended.index], *ending, ended.clock.seconds());
    }
  }

  void conclude(SweepRun& run, const Ending& ending, double seconds) {
    changed_ = true;
    run.seconds = existing_.took(run, seconds);
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
      outlook_.took(run, run.seconds);
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
    if (!run.in_order() && state != RunState::kStopped && first_failure_ == 0) first_failure_ = code;
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
    for (ActiveRun& each : active_) {
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
    for (const ActiveRun& each : active_) {
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
  ExistingRuns existing_;
  TuningRounds rounds_;
  Outlook outlook_;
  Progress progress_;
  SweepHead head_;
  std::vector<ActiveRun> active_;
  std::set<std::string> notes_;
  std::set<size_t> told_reused_;
  bool stopping_ = false, changed_ = false, told_sides_ = false, told_turns_ = false;
  int first_failure_ = 0;
  Stopwatch since_written_, since_estimated_;
  std::optional<double> left_;
};

}  // namespace

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
