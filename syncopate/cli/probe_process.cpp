#include "syncopate/cli/probe_process.h"

#include <fmt/ranges.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/process.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/lab/runner.h"
#include "syncopate/sim/measured_for.h"

namespace syncopate::cli {
namespace {

/// The words of a probe of this spec, with the network and what is exchanged left out.
std::vector<std::string> probe_command(spec::RunSpec spec, int64_t workers) {
  const int64_t global = spec.examples_per_step();
  spec.network = {};
  spec.comm.slow.clear();
  spec.comm.fault.clear();
  spec.strategy = {};
  if (workers == 1) spec.strategy.name = "single";
  spec.codec = {};
  spec.comm.workers = workers;
  spec.train.batch_size = 0;
  spec.train.global_batch = std::max(global, workers * std::max<int64_t>(1, spec.train.accumulate));
  std::vector<std::string> words = lab::command_for(spec, "", false);
  words[1] = "probe";
  const auto out = std::find(words.begin(), words.end(), "--out");
  words.erase(out, out + 2);
  return words;
}

void run_probe(std::vector<std::string> words, const std::filesystem::path& log) {
  ProcessOptions options;
  options.argv = std::move(words);
  options.reads_nothing = true;
  options.log = log;
  Process process(options);
  const int status = process.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::string last = "it said nothing";
  const std::string text = read_file(log, "log of a probe");
  for (const std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) last = std::string(trim(line));
  }
  const std::string ours = "syncopate: ";
  if (last.starts_with(ours)) last = last.substr(ours.size());
  if (WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::kConfig))
    throw ConfigError("{}", last);
  throw DataError("a step could not be measured on this machine: {}", last);
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "syncopate-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw DataError("cannot make a folder for the meantime in {}: {}", name, std::strerror(errno));
  path_ = name;
}

ScratchFolder::~ScratchFolder() { remove_tree(path_); }

sim::Profile measure_profile(spec::RunSpec spec, int64_t workers) {
  tell("measuring a step with {} worker{} on this machine", workers, workers == 1 ? "" : "s at once");
  const ScratchFolder scratch;
  std::vector<std::string> words = probe_command(std::move(spec), workers);
  words.insert(words.end(), {"--no-links", "--profile", (scratch / "profile.json").string()});
  run_probe(std::move(words), scratch / "log");
  return sim::read_profile(scratch / "profile.json");
}

void use_profile(const sim::Profile& profile, spec::RunSpec& spec, const std::vector<std::string>& given) {
  const auto taken = sim::take_settings(profile, spec, given);
  if (!taken.empty()) tell("note: as the profile was measured: {}", fmt::join(taken, " "));
}

void say_cores(const sim::Profile& profile, int64_t workers, int64_t threads) {
  const std::string note = sim::core_note(profile, workers, threads);
  if (!note.empty()) tell("note: {}", note);
}

MeasuredMachine measure_machine(spec::RunSpec spec, int64_t workers) {
  tell("measuring a step and the links between {} workers on this machine", workers);
  const ScratchFolder scratch;
  std::vector<std::string> words = probe_command(std::move(spec), workers);
  words.insert(words.end(), {"--profile", (scratch / "profile.json").string(), "--out",
                             (scratch / "measured.toml").string()});
  run_probe(std::move(words), scratch / "log");
  return {network::load((scratch / "measured.toml").string()), sim::read_profile(scratch / "profile.json")};
}

}  // namespace syncopate::cli
