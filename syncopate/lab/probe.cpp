#include "syncopate/lab/probe.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/record/run_folder.h"

namespace syncopate::lab {
namespace {

namespace fs = std::filesystem;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kSteps = 8;        ///< that are enough
constexpr double kPatience = 20;     ///< seconds after the first step
constexpr double kAtLeast = 0.5;     ///< likewise, of short steps
constexpr double kStartLimit = 600;  ///< until the first step
constexpr size_t kFailures = 3;      ///< of runs alike, before the rest are taken to be no better

/// A folder below the system's for temporary ones, gone at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "syncopate-probe-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw DataError("cannot make a folder for probes, {}: {}", name, std::strerror(errno));
    path_ = name;
  }
  ~TemporaryFolder() { remove_tree(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The number before a word: of "640 training and 200 test examples" and "training" 640.
int64_t number_before(const std::string& line, const std::string& word) {
  const size_t at = line.find(" " + word);
  if (at == std::string::npos) return 0;
  const size_t space = line.rfind(' ', at - 1);
  const size_t begin = space == std::string::npos ? 0 : space + 1;
  return parse_integer(line.substr(begin, at - begin)).value_or(0);
}

void read_announcement(const fs::path& log, Probe& probe) {
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    if (line.find(" test examples") == std::string::npos) continue;
    probe.training = number_before(line, "training");
    probe.validation = number_before(line, "validation");
    probe.test = number_before(line, "test examples");
    return;
  }
}

struct StepsSoFar {
  int64_t count = 0;
  double later_ms = 0;  ///< of all but the first, summed
};

StepsSoFar read_steps(const record::RunFolder& folder) {
  StepsSoFar found;
  std::ifstream file(folder.steps());
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto step = nlohmann::json::parse(line, nullptr, false);
    if (!step.is_object()) continue;
    if (found.count++ > 0) found.later_ms += step.value("ms", 0.0);
  }
  return found;
}

/// What its phase will give it, taken from where the phase itself starts.
spec::RunSpec without_phase(const Plan& plan, const SweepRun& run) {
  spec::RunSpec spec = run.spec;
  const SweepRun* at = &run;
  while (at->start) at = &plan.runs[*at->start];
  if (at == &run || plan.runs[*run.start].state == RunState::kDone) return spec;
  spec.model.name = at->spec.model.name;
  spec.model.init_from = at->spec.model.init_from;
  return spec;
}

Probe probe_run(const Launch& launch, const Probing& probing, Runner& runner) {
  Probe probe;
  const record::RunFolder folder{launch.folder};
  const auto running = runner.start(launch);
  Stopwatch clock;
  double first_seen = kNan;
  int64_t first_count = 0;
  bool stopping = false;
  std::optional<Ending> ending;
  while (!ending) {
    ending = running->look();
    const StepsSoFar steps = read_steps(folder);
    const double now = clock.seconds(), since = now - first_seen;
    if (steps.count > 0 && std::isnan(first_seen)) {
      first_seen = now;
      first_count = steps.count;
      probe.start_seconds = now;
    }
    if (steps.count > 1 && !stopping) {
      probe.step_seconds = launch.spec.runs_free() && steps.count > first_count
                               ? since / static_cast<double>(steps.count - first_count)
                               : steps.later_ms / 1e3 / static_cast<double>(steps.count - 1);
    }
    const bool enough = (steps.count >= kSteps && since > kAtLeast) || since > kPatience || now > kStartLimit;
    if (!stopping && (enough || probing.stop_requested())) {
      running->stop();
      stopping = true;
    }
    constexpr int kLookMs = 20;
    if (!ending) ::poll(nullptr, 0, kLookMs);
  }
  read_announcement(launch.log, probe);
  if (ending->exit_code != 0 && !stopping) {
    probe.failure =
        ending->message.empty() ? fmt::format("it ended with {}", ending->exit_code) : ending->message;
  }
  return probe;
}

/// Alike in runs that one probe speaks for, whatever their length.
std::string probe_key(const Plan& plan, const SweepRun& run) {
  spec::RunSpec bare = without_phase(plan, run);
  bare.optim = {};
  bare.optim.name = run.spec.optim.name;
  bare.train.seed = bare.train.epochs = bare.train.steps = 0;
  bare.task.validation.clear();
  bare.task.test_limit = 0;
  return bare.fields().to_json().dump();
}

}  // namespace

double expected_seconds(const spec::RunSpec& spec, const Probe& probe) {
  const double each = static_cast<double>(examples_per_update(spec));
  const bool free = spec.runs_free();
  const double held_out = spec.validation().share * static_cast<double>(probe.training + probe.validation);
  const double training = static_cast<double>(probe.training + probe.validation) - held_out;
  const double per_epoch = std::max(1.0, std::ceil(training / each));
  const double epochs = static_cast<double>(std::max<int64_t>(1, spec.train.epochs));
  const double steps = spec.train.steps > 0
                           ? static_cast<double>(spec.train.steps * (free ? spec.comm.workers : 1))
                           : epochs * per_epoch;
  const double test = spec.task.test_limit > 0 ? std::min<double>(static_cast<double>(spec.task.test_limit),
                                                                  static_cast<double>(probe.test))
                                               : static_cast<double>(probe.test);
  const bool validates = spec.validation().on();
  const double looked_at = validates ? std::max(held_out, static_cast<double>(probe.validation)) : test;
  const auto every = parse_integer(spec.train.eval_every);
  const double evaluations =
      std::max(1.0, every ? std::floor(steps / static_cast<double>(*every)) : std::ceil(steps / per_epoch));
  const double evaluated = evaluations * looked_at + (validates ? test : 0);
  constexpr double kForward = 1.0 / 3;  // of forward and backward
  return probe.start_seconds + probe.step_seconds * (steps + kForward * evaluated / each);
}

std::vector<Estimate> estimate(const Plan& plan, const Probing& probing, Runner& runner) {
  std::map<std::string, double> took;  // of runs that are done, by cost
  for (const SweepRun& run : plan.runs) {
    if (run.state == RunState::kDone && std::isfinite(run.seconds)) took[run.cost] = run.seconds;
  }
  const TemporaryFolder folder;
  struct Kind {
    std::optional<Probe> probe{};                   // of one that could run
    std::map<std::string, std::string> failures{};  // of others, by settings without the seed
  };
  std::map<std::string, Kind> kinds;
  std::vector<Estimate> estimates;
  int launched = 0;
  for (const SweepRun& run : plan.runs) {
    if (const auto known = took.find(run.cost); run.ended() || known != took.end()) {
      const bool own = run.ended() && std::isfinite(run.seconds);
      estimates.push_back({own ? run.seconds : known != took.end() ? known->second : kNan});
      continue;
    }
    Kind& kind = kinds[probe_key(plan, run)];
    spec::RunSpec seedless = run.spec;
    seedless.train.seed = 0;
    const std::string settings = seedless.fields().to_json().dump();
    if (!kind.probe && !kind.failures.contains(settings) && kind.failures.size() < kFailures &&
        !probing.stop_requested()) {
      probing.say(fmt::format("probing {}", run.name));
      const std::string name = fmt::format("probe{}", ++launched);
      const spec::RunSpec spec = without_phase(plan, run);
      Probe probe =
          probe_run({.spec = spec, .folder = folder.path() / name, .log = folder.path() / (name + ".log")},
                    probing, runner);
      remove_tree(folder.path() / name);
      if (probe.failure.empty()) {
        kind.probe = std::move(probe);
      } else {
        kind.failures.emplace(settings, probe.failure);
      }
    }
    const auto failed = kind.failures.find(settings);
    const std::string failure = failed == kind.failures.end() ? "" : failed->second;
    const bool known = failure.empty() && kind.probe && kind.probe->step_seconds > 0;
    estimates.push_back({known ? expected_seconds(run.spec, *kind.probe) : kNan, failure});
  }
  return estimates;
}

}  // namespace syncopate::lab
