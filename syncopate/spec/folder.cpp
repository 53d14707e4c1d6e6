#include "syncopate/spec/folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"

namespace syncopate::spec {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kBegan = "began_with";  // in spec.json, beside the settings

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

}  // namespace

record::RunFolder choose_folder(RunSpec& spec, const std::string& out, bool resume) {
  const fs::path wanted = out.empty() ? fs::path("runs") / spec.name() : fs::path(out);
  record::RunFolder folder{wanted};
  if (resume) {
    // Of the folders that the same settings made, the newest is meant.
    for (int i = 2; out.empty() && holds_run(fmt::format("{}-{}", wanted.string(), i)); ++i) {
      folder.path = fmt::format("{}-{}", wanted.string(), i);
    }
    if (!holds_run(folder.path)) {
      throw ConfigError("there is no run in {} to resume; run without --resume to start one{}",
                        folder.path.string(),
                        out.empty() ? ", or give --out for one that had another number of workers" : "");
    }
    resume_settings(spec, folder);
    return folder;
  }
  if (!out.empty()) {
    if (holds_run(wanted)) {
      throw ConfigError("{} holds a run already; add --resume to continue it or choose another --out",
                        wanted.string());
    }
    return folder;
  }
  for (int i = 2; holds_run(folder.path); ++i) folder.path = fmt::format("{}-{}", wanted.string(), i);
  return folder;
}

void resume_settings(RunSpec& spec, const record::RunFolder& folder) {
  Json before = read_settings(folder);
  keep_global_batch(spec, before);
  const Json now = spec.fields().to_json();
  for (const auto& [name, value] : now.items()) {
    const auto old = before.value(name, Json());
    if (old != value && !may_change_on_resume(name)) {
      throw ConfigError("--resume needs the settings the run in {} began with, but {} was {} and is {} now",
                        folder.path.string(), name, old.dump(), value.dump());
    }
  }
  spec.examples_per_step();  // there may be more workers than examples
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
  } else {
    for (const auto& entry : fs::directory_iterator(folder.path)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("loss_") || name.starts_with("rank") || name.ends_with(".jsonl"))
        fs::remove(entry.path());
    }
  }
  write_file_atomically(folder.spec(), settings.dump(2) + "\n");
}

}  // namespace syncopate::spec
