#include "syncopate/lab/sweep.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/process.h"
#include "syncopate/run/launch.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/folder.h"

namespace syncopate::lab {
namespace {

std::vector<std::string> command_for(spec::RunSpec& spec, const std::filesystem::path& folder, bool resume) {
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

/// Where signals go on to; a handler can only reach what is static.
std::atomic<pid_t> listener{0};
void pass_on(int) {
  if (const pid_t child = listener; child > 0) ::kill(child, SIGTERM);
}

/// While one lives, SIGTERM and SIGHUP (unless that is ignored: nohup) are passed on to a child, and Ctrl-C,
/// which reaches it as it reaches us, is left to it: it ends in order and we return its code.
class LeftToChild {
 public:
  explicit LeftToChild(pid_t child) {
    listener = child;
    struct sigaction ignore {
    }, forward{};
    ignore.sa_handler = SIG_IGN;
    forward.sa_handler = pass_on;
    ::sigaction(SIGINT, &ignore, &interrupt_);
    ::sigaction(SIGTERM, &forward, &terminate_);
    ::sigaction(SIGHUP, &forward, &hangup_);
    if (hangup_.sa_handler == SIG_IGN) ::sigaction(SIGHUP, &hangup_, nullptr);
  }
  ~LeftToChild() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
    ::sigaction(SIGHUP, &hangup_, nullptr);
    listener = 0;
  }
  LeftToChild(const LeftToChild&) = delete;
  LeftToChild& operator=(const LeftToChild&) = delete;

 private:
  struct sigaction interrupt_ {
  }, terminate_{}, hangup_{};
};

/// Runs this program again, to its end.
int run_program(const std::vector<std::string>& words) {
  ProcessOptions options;
  options.argv = words;
  options.default_signals = {SIGINT};
  std::optional<Process> child;
  try {
    child.emplace(options);
  } catch (const std::system_error&) {
    throw InternalError("cannot start this program again");
  }
  const LeftToChild signals(child->pid());
  const int status = child->wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

record::RunRecord read_result(const record::RunFolder& folder) {
  try {
    return record::run_from_json(nlohmann::ordered_json::parse(read_file(folder.result(), "result")));
  } catch (const nlohmann::json::exception&) {
    throw DataError("{} is not a result; remove the folder {} and run again", folder.result().string(),
                    folder.path.string());
  }
}

}  // namespace

SweepResult sweep(const Experiment& experiment, const std::filesystem::path& out,
                  const std::function<void(const std::string&)>& say) {
  SweepResult result;
  run::be_the_parent();
  std::map<std::string, std::string> folders;  // of the phases that are done
  std::vector<Experiment::Row> all = experiment.phases;
  all.insert(all.end(), experiment.rows.begin(), experiment.rows.end());
  for (size_t i = 0; i < all.size(); ++i) {
    const bool phase = i < experiment.phases.size();
    SweepRow row{.name = all[i].name, .spec = all[i].spec, .record = std::nullopt, .reused = false};
    if (all[i].after) row.spec.model.init_from = folders.at(*all[i].after);
    const record::RunFolder folder{out / row.spec.name()};
    const std::string label = fmt::format("[{}/{}] {}{} with {} worker{}", i + 1, all.size(),
                                          row.name.empty() ? "" : row.name + ": ", row.spec.label(),
                                          row.spec.comm.workers, row.spec.comm.workers == 1 ? "" : "s");
    if (std::filesystem::exists(folder.done())) {
      say(fmt::format("{}: done before, taken from {}", label, folder.path.string()));
      row.reused = true;
      row.record = read_result(folder);
    } else {
      say(label);
      // A folder without a checkpoint is what a killed run left: it is started anew, once nobody holds it.
      const bool resume = std::filesystem::exists(folder.checkpoint());
      const int code = run_program(command_for(row.spec, folder.path, resume));
      if (code == 0) {
        row.record = read_result(folder);
      } else if (code != static_cast<int>(ExitCode::kDiverged) || phase) {
        result.exit_code = code;
        return result;
      }
    }
    if (phase) {
      folders[row.name] = folder.path.string();
    } else {
      result.rows.push_back(std::move(row));
    }
  }
  return result;
}

}  // namespace syncopate::lab
