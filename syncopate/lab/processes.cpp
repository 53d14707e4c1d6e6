#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstring>
#include <fstream>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/process.h"
#include "syncopate/base/text.h"
#include "syncopate/lab/runner.h"
#include "syncopate/run/launch.h"
#include "syncopate/spec/effect.h"

namespace syncopate::lab {
namespace {

constexpr std::string_view kNote = "note: ", kOurs = "syncopate: ";

/// What is started in its lifetime may use these cores alone.
class OnCores {
 public:
  explicit OnCores(const std::vector<int>& cores) : set_(!cores.empty()) {
    if (!set_) return;
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (const int core : cores) CPU_SET(static_cast<size_t>(core), &wanted);
    ::sched_getaffinity(0, sizeof before_, &before_);
    ::sched_setaffinity(0, sizeof wanted, &wanted);
  }
  ~OnCores() {
    if (set_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;

 private:
  bool set_;
  cpu_set_t before_{};
};

/// "step 12/40 · ..." as progress is told where there is no terminal.
std::optional<RunInProgress::Steps> steps_in(std::string_view line) {
  constexpr std::string_view kStep = "step ";
  if (!line.starts_with(kStep)) return std::nullopt;
  const std::string_view counts = line.substr(kStep.size(), line.find(' ', kStep.size()) - kStep.size());
  const auto parts = split(counts, '/');
  if (parts.size() != 2) return std::nullopt;
  const auto done = parse_integer(parts[0]), of = parse_integer(parts[1]);
  if (!done || !of) return std::nullopt;
  return RunInProgress::Steps{*done, *of};
}

class ProcessRun : public RunInProgress {
 public:
  explicit ProcessRun(const Launch& launch) : log_(launch.log) {
    ProcessOptions options;
    options.argv = command_for(launch.spec, launch.folder, launch.resume);
    options.reads_nothing = true;
    options.log = launch.log;
    options.own_group = true;  // the terminal's Ctrl-C reaches us alone, and we tell it
    options.default_signals = {SIGINT, SIGTERM, SIGHUP, SIGTSTP};
    options.blocks_no_signals = true;
    const OnCores on(launch.cores);
    try {
      process_.emplace(options);
    } catch (const std::system_error& error) {
      throw InternalError(fmt::format("cannot start this program again: {}", error.code().message()));
    }
  }
  ~ProcessRun() override {
    if (process_->status()) return;
    ::kill(process_->pid(), SIGKILL);
    process_->wait();
  }

  std::optional<Ending> look() override {
    if (!process_->look()) return std::nullopt;
    const int status = *process_->status();
    Ending ending{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                  .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    std::ifstream log(log_);
    std::string last;
    for (std::string line; std::getline(log, line);) {
      if (line.starts_with(kNote)) ending.notes.push_back(line.substr(kNote.size()));
      if (!trim(line).empty()) last = line;
    }
    if (ending.signal != 0) {
      ending.message =
          fmt::format("it was killed by signal {} ({})", ending.signal, ::strsignal(ending.signal));
    } else if (ending.exit_code != 0) {
      ending.message = last.starts_with(kOurs) ? last.substr(kOurs.size()) : last;
    }
    return ending;
  }

  void stop() override {
    if (!process_->status()) ::kill(process_->pid(), SIGTERM);
  }

  void pause(bool still) override {
    if (!process_->status()) ::kill(process_->pid(), still ? SIGTSTP : SIGCONT);
  }

  std::optional<Steps> steps() override {
    std::ifstream log(log_);
    log.seekg(read_);
    for (std::string line; std::getline(log, line) && !log.eof();) {
      read_ = log.tellg();
      if (const auto found = steps_in(line)) steps_ = found;
    }
    return steps_;
  }

 private:
  std::filesystem::path log_;
  std::optional<Process> process_;
  std::streamoff read_ = 0;  ///< of the log
  std::optional<Steps> steps_;
};

class ProcessRunner : public Runner {
 public:
  ProcessRunner() { run::be_the_parent(); }
  std::unique_ptr<RunInProgress> start(const Launch& launch) override {
    return std::make_unique<ProcessRun>(launch);
  }
};

}  // namespace

std::vector<std::string> command_for(spec::RunSpec spec, const std::filesystem::path& folder, bool resume) {
  std::vector<std::string> words{"syncopate", "train",        "--workers", std::to_string(spec.comm.workers),
                                 "--out",     folder.string()};
  if (resume) words.push_back("--resume");
  const Fields fields = spec.fields();
  for (const Fields::Field& field : fields.all()) {
    if (spec::no_effect(spec, field.name)) continue;  // it has its default, and to give it would be refused
    words.push_back("--set");
    words.push_back(field.name + "=" + Fields::text_of(field));
  }
  return words;
}

std::vector<int> own_cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &mine)) cores.push_back(core);
  }
  return cores;
}

std::unique_ptr<Runner> process_runner() { return std::make_unique<ProcessRunner>(); }

}  // namespace syncopate::lab
