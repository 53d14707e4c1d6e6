#include "syncopate/lab/reuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/version.h"
#include "syncopate/record/run_folder.h"
#include "syncopate/spec/recorded.h"

namespace syncopate::lab {
namespace {

namespace fs = std::filesystem;

/// Which input is not what the run read; empty: none.
std::string changed_input(const Fingerprints& before, const Fingerprints& now) {
  for (const auto& [setting, hash] : now) {
    const auto found = before.find(setting);
    if (found == before.end() || found->second != hash) return setting;
  }
  return "";
}

fs::file_time_type newest_in(const fs::path& path) {
  if (!fs::is_directory(path)) return fs::last_write_time(path);
  auto newest = fs::file_time_type::min();
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) newest = std::max(newest, entry.last_write_time());
  }
  return newest;
}

/// The same of a run of which nobody noted what it read.
std::string younger_input(spec::RunSpec& spec, const Fingerprints& now, const fs::path& mark) {
  const Fields fields = spec.fields();
  const auto then = fs::last_write_time(mark);
  for (const auto& [setting, hash] : now) {
    const fs::path path = Fields::text_of(fields.find(setting));
    const record::RunFolder run{path};
    const fs::path read = setting == "model.init_from" && fs::exists(run.model()) ? run.model() : path;
    if (newest_in(read) > then) return setting;
  }
  return "";
}

/// The name of a run in the same folder that a run starts from; of another start the path as it is.
std::string start_in(const fs::path& out, const std::string& init_from) {
  const fs::path path = fs::path(init_from).lexically_normal();
  const bool inside = !init_from.empty() && (out / path.filename()).lexically_normal() == path;
  return inside ? path.filename().string() : init_from;
}

/// The settings of the folder's run, if they are these.
std::optional<spec::RunSpec> same_settings(const fs::path& out, const record::RunFolder& folder,
                                           const spec::RunSpec& spec) {
  try {
    const spec::RunSpec recorded = spec::read_spec(folder.path);
    spec::RunSpec before = recorded, now = spec;
    now.model.init_from = start_in(out, spec.model.init_from);
    // The sweep's folder may have been spelled otherwise, or moved; what is in it is known by its content.
    if (now.model.init_from != spec.model.init_from)
      before.model.init_from = fs::path(before.model.init_from).filename().string();
    if (before.fields().to_json() != now.fields().to_json()) return std::nullopt;
    return recorded;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Whether a run can go on from where it began: it has to find its start by the path that it knows.
bool start_is_there(const std::string& before, const std::string& now) {
  std::error_code error;
  return before == now || fs::equivalent(before, now, error);
}

/// What it trained and evaluated; loading is not recorded.
double seconds_of(const record::RunRecord& record) {
  double seconds = record.train_seconds;
  for (const record::EpochRecord& epoch : record.epochs) {
    if (epoch.eval) seconds += epoch.eval->seconds;
  }
  return seconds;
}

}  // namespace

Found look_into(const fs::path& out, const std::string& name, spec::RunSpec spec, const Fingerprints& inputs,
                const InputBook& book) {
  const record::RunFolder folder{out / name};
  const bool done = fs::exists(folder.done()), begun = fs::exists(folder.checkpoint());
  if (!fs::exists(folder.spec()) || (!done && !begun)) return {};
  const auto recorded = same_settings(out, folder, spec);
  if (!recorded) return {.what = Finding::kOutdated, .why = "its settings are others"};
  const auto before = book.of_run(name);
  const std::string changed = before ? changed_input(*before, inputs)
                                     : younger_input(spec, inputs, done ? folder.done() : folder.spec());
  if (!changed.empty()) {
    const bool start = changed.starts_with("model.");
    return {.what = Finding::kOutdated,
            .why = fmt::format("{} changed since", start ? "the model that it starts from" : changed)};
  }
  const std::string& start = recorded->model.init_from;
  if (!done && !start_is_there(start, spec.model.init_from))
    return {.what = Finding::kOutdated, .why = "the model that it started from was moved"};
  if (!done) return {.what = Finding::kUnfinished, .init_from = start};
  Found found{.what = Finding::kDone};
  try {
    found.record = record::run_from_json(nlohmann::ordered_json::parse(read_file(folder.result(), "result")));
  } catch (const std::exception&) {
    return {.what = Finding::kOutdated, .why = "its result.json is damaged"};
  }
  const record::Provenance& by = found.record->provenance;
  found.seconds = seconds_of(*found.record);
  found.other_version = by.version != program_version() || by.commit != program_commit();
  return found;
}

fs::path set_aside(const fs::path& out, const std::string& folder) {
  make_folder(out / "outdated");
  fs::path place = out / "outdated" / folder;
  for (int i = 2; fs::exists(place); ++i) place = out / "outdated" / fmt::format("{}-{}", folder, i);
  fs::rename(out / folder, place);
  return place;
}

}  // namespace syncopate::lab
