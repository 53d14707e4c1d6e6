#include "syncopate/spec/folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::spec {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char *kBegan = kNotes[0], *kExtended = kNotes[1];

/// Something that could be continued or is worth keeping; what a run left that died before its first
/// checkpoint is not.
bool holds_run(const fs::path& path) {
  return fs::exists(path / "spec.json") &&
         (fs::exists(path / "checkpoint.safetensors") || fs::exists(path / "DONE"));
}

Json read_settings(const record::RunFolder& folder) {
  try {
    return Json::parse(read_file(folder.spec(), "settings of the run"));
  } catch (const nlohmann::json::exception&) {
    throw DataError("{} is not JSON; the run cannot be resumed", folder.spec().string());
  }
}

/// The settings of a batch that the first command may have given, and the number of workers they were for.
Json begun_with(const Json& before) {
  if (before.contains(kBegan)) return before.at(kBegan);
  return {{"comm.workers", before.value("comm.workers", 1)},
          {"train.batch_size", before.value("train.batch_size", 0)}};
}

/// Where the number of workers changed, a batch stays what it was over all of them, which then is a setting
/// of the run. `before` is made to say so as well where `spec` asks for that, in whatever words.
void keep_global_batch(RunSpec& spec, Json& before) {
  const int64_t workers = before.value("comm.workers", 1);
  if (spec.comm.workers == workers && !before.contains(kBegan)) return;
  RunSpec recorded;
  recorded.comm.workers = workers;
  recorded.pipeline.stages = before.value("pipeline.stages", 1);
  recorded.train.batch_size = before.value("train.batch_size", 0);
  recorded.train.global_batch = before.value("train.global_batch", 0);
  recorded.train.accumulate = before.value("train.accumulate", 1);
  const int64_t batch = recorded.examples_per_step();
  const int64_t of_a_worker = begun_with(before).value("train.batch_size", 0);
  const bool as_begun =
      spec.train.global_batch == 0 && (spec.train.batch_size == 0 || spec.train.batch_size == of_a_worker);
  before["train.global_batch"] = batch;
  before["train.batch_size"] = spec.train.batch_size == 0 || as_begun ? 0 : of_a_worker;
  if (!as_begun) return;
  spec.train.global_batch = batch;
  spec.train.batch_size = 0;
}

/// A run's texts are arranged as when it began; those of a version that did not know the setting were in
/// order. True where that is not what was asked for.
bool keep_arrangement(RunSpec& spec, Json& before) {
  const bool began = before.value("train.arrange", false);
  before["train.arrange"] = began;
  const std::vector<std::string> heeded = settings_of_task(spec.task.name);
  const bool heeds = std::find(heeded.begin(), heeded.end(), "train.arrange") != heeded.end();
  return std::exchange(spec.train.arrange, began) != began && heeds;
}

fs::path numbered(const fs::path& path, int number) { return fmt::format("{}-{}", path.string(), number); }

fs::path wanted_folder(RunSpec& spec, const FolderRequest& request) {
  return request.out.empty() ? fs::path("runs") / spec.name() : fs::path(request.out);
}

struct Difference {
  std::string name;
  Change kind;
  Json before, now;
};

/// Where `spec` is not what spec.json says; a setting that a former version did not know had its default.
std::vector<Difference> differences(const Json& before, RunSpec spec) {
  RunSpec defaults;
  const Json now = spec.fields().to_json(), usual = defaults.fields().to_json();
  std::vector<Difference> found;
  for (const auto& [name, value] : now.items()) {
    const Json old = before.value(name, usual.at(name));
    if (old == value) continue;
    // Whoever chooses counts evaluations.
    const bool counts = name == "train.eval_every" && spec.chooses();
    found.push_back({name, counts ? Change::kExtends : change_on_resume(name), old, value});
  }
  return found;
}

/// What stages of a killed run remembered: before anybody opens such files anew.
void sweep_engine_states(const fs::path& folder) {
  std::error_code unlisted;
  for (const auto& entry : fs::directory_iterator(folder, unlisted)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("engine-") || name.ends_with(".activations")) fs::remove(entry.path(), unlisted);
  }
}

}  // namespace

fs::path folder_around(const fs::path& folder) {
  fs::path plain = folder.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();
  if (plain == "." || plain.filename() == "..") plain = fs::weakly_canonical(plain);
  return plain.parent_path();
}

record::RunFolder choose_folder(RunSpec& spec, const FolderRequest& request) {
  const std::string& out = request.out;
  const fs::path wanted = wanted_folder(spec, request);
  record::RunFolder folder{wanted};
  if (request.resume) {
    // Of the folders that the same settings made, the newest is meant.
    for (int i = 2; out.empty() && holds_run(numbered(wanted, i)); ++i) folder.path = numbered(wanted, i);
    if (!holds_run(folder.path)) {
      throw ConfigError("there is no run in {} to resume; run without --resume to start one{}",
                        folder.path.string(),
                        out.empty() ? ", or give --out for one that had another number of workers" : "");
    }
    return folder;
  }
  if (!out.empty() && holds_run(wanted)) {
    throw ConfigError("{} holds a run already; add --resume to continue it or choose another --out",
                      wanted.string());
  }
  for (int i = 2; holds_run(folder.path); ++i) folder.path = numbered(wanted, i);
  return folder;
}

ClaimedFolder claim_folder(RunSpec& spec, const FolderRequest& request) {
  record::RunFolder folder = choose_folder(spec, request);
  const fs::path wanted = wanted_folder(spec, request);
  for (int i = 2;; ++i) {
    const bool fresh = !fs::exists(folder.path);
    std::string holder;
    auto lock = FolderLock::take(
        folder.path, {.purpose = request.command, .patience = request.patience, .on_wait = request.note},
        &holder);
    // Of two runs with the same settings that are started together, the second takes the next name.
    const bool may_move = request.out.empty() && !request.resume;
    if (!lock && !may_move) {
      constexpr size_t kShown = 140;  // enough to know it by; LOCK has the whole command
      if (holder.size() > kShown) holder = holder.substr(0, kShown) + " …";
      throw ConfigError("{} is in use by {}; wait until that run is done, stop it, or choose another --out",
                        folder.path.string(), holder);
    }
    if (lock && !(may_move && holds_run(folder.path))) {
      ClaimedFolder claimed{.folder = folder, .lock = std::move(*lock), .fresh = fresh, .notes = {}};
      if (!request.resume && !holds_run(folder.path)) sweep_engine_states(folder.path);
      if (request.resume) claimed.notes = resume_settings(spec, folder, request.extend);
      return claimed;
    }
    while (holds_run(numbered(wanted, i))) ++i;
    folder.path = numbered(wanted, i);
  }
}

std::vector<std::string> resume_settings(RunSpec& spec, const record::RunFolder& folder, bool extend) {
  Json before = read_settings(folder);
  keep_global_batch(spec, before);
  std::vector<std::string> same, extended, refused;
  if (keep_arrangement(spec, before))
    same.push_back(fmt::format("train.arrange stays {}, as when the run began", spec.train.arrange));
  for (const Difference& change : differences(before, spec)) {
    if (change.name == "comm.workers") continue;  // the checkpoint says what that means
    auto& list = change.kind == Change::kNothing   ? same
                 : change.kind == Change::kExtends ? extended
                                                   : refused;
    list.push_back(
        fmt::format("{} was {} and is {} now", change.name, change.before.dump(), change.now.dump()));
  }
  if (!refused.empty()) {
    throw ConfigError(
        "--resume needs the settings the run in {} began with, but {}; start a new run, with --init-from to "
        "begin from this one's model",
        folder.path.string(), fmt::join(refused, ", "));
  }
  if (!extended.empty() && !extend) {
    throw ConfigError(
        "--resume goes on with the run in {} as it began, but {}; add --extend to go on so, which makes it "
        "another run",
        folder.path.string(), fmt::join(extended, ", "));
  }
  spec.examples_per_step();  // there may be more workers than examples
  for (std::string& change : extended) {
    change = "extended: " + change;
    same.push_back(std::move(change));
  }
  return same;
}

void save_model(const fs::path& folder, const std::function<void(const fs::path&)>& write) {
  const fs::path fresh = folder.string() + ".writing";
  const auto remove = [](const fs::path& path) {
    if (!remove_tree(path)) throw DataError("cannot remove {}: {}", path.string(), std::strerror(errno));
  };
  remove(fresh);
  try {
    make_folder(fresh);
    write(fresh);
    remove(folder);
    fs::rename(fresh, folder);
  } catch (...) {
    remove_tree(fresh);
    throw;
  }
}

void start_folder(const record::RunFolder& folder, RunSpec& spec) {
  make_folder(folder.path);
  Json settings = spec.fields().to_json();
  if (holds_run(folder.path)) {
    const Json before = read_settings(folder);
    if (before.contains(kBegan) || before.value("comm.workers", 1) != spec.comm.workers)
      settings[kBegan] = begun_with(before);
    Json extended = before.value(kExtended, Json::array());
    for (const Difference& change : differences(before, spec)) {
      if (change.kind == Change::kExtends)
        extended.push_back({{"setting", change.name}, {"was", change.before}, {"is", change.now}});
    }
    if (!extended.empty()) settings[kExtended] = extended;
  } else {
    for (const auto& entry : fs::directory_iterator(folder.path)) {
      const std::string name = entry.path().filename().string();
      const auto is = [&](const char* start, const char* end) {
        return name.starts_with(start) && name.ends_with(end);
      };
      if (is("loss_", ".txt") || is("rank", ".log") || is("best-", ".safetensors") || name == "steps.jsonl" ||
          name == "evals.jsonl")
        fs::remove(entry.path());
    }
  }
  write_file_atomically(folder.spec(), settings.dump(2) + "\n");
}

}  // namespace syncopate::spec
