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

/// Something that could be continued or is worth keeping; what a run left that died before its first
/// checkpoint is not.
bool holds_run(const fs::path& path) {
  return fs::exists(path / "spec.json") &&
         (fs::exists(path / "checkpoint.safetensors") || fs::exists(path / "DONE"));
}

void require_same_settings(RunSpec& spec, const record::RunFolder& folder) {
  nlohmann::ordered_json before;
  try {
    before = nlohmann::ordered_json::parse(read_file(folder.spec(), "settings of the run"));
  } catch (const nlohmann::json::exception&) {
    throw DataError("{} is not JSON; the run cannot be resumed", folder.spec().string());
  }
  const nlohmann::ordered_json now = spec.fields().to_json();
  for (const auto& [name, value] : now.items()) {
    const auto old = before.value(name, nlohmann::ordered_json());
    if (old != value && !may_change_on_resume(name)) {
      throw ConfigError("--resume needs the settings the run in {} began with, but {} was {} and is {} now",
                        folder.path.string(), name, old.dump(), value.dump());
    }
  }
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
      throw ConfigError("there is no run in {} to resume; run without --resume to start one",
                        folder.path.string());
    }
    require_same_settings(spec, folder);
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
  if (!holds_run(folder.path)) {
    for (const auto& entry : fs::directory_iterator(folder.path)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("loss_") || name.starts_with("rank") || name.ends_with(".jsonl"))
        fs::remove(entry.path());
    }
  }
  write_file_atomically(folder.spec(), spec.fields().to_json().dump(2) + "\n");
}

}  // namespace syncopate::spec
