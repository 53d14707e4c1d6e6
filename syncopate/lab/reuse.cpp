#include "syncopate/lab/reuse.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
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

bool same_settings(const record::RunFolder& folder, spec::RunSpec& spec) {
  try {
    spec::RunSpec recorded = spec::read_spec(folder.path);
    return recorded.fields().to_json() == spec.fields().to_json();
  } catch (const Error&) {
    return false;
  }
}

/// From the start of its (last) process to its end, which includes loading; at least what it trained and
/// evaluated.
double seconds_of(const record::RunRecord& record, const fs::path& done) {
  double seconds = record.train_seconds;
  for (const record::EpochRecord& epoch : record.epochs) {
    if (epoch.eval) seconds += epoch.eval->seconds;
  }
  std::tm began{};
  struct stat ended {};
  if (::strptime(record.provenance.date.c_str(), "%Y-%m-%dT%H:%M:%SZ", &began) == nullptr ||
      ::stat(done.c_str(), &ended) != 0)
    return seconds;
  return std::max(seconds, static_cast<double>(ended.st_mtime - ::timegm(&began)));
}

}  // namespace

Found look_into(const fs::path& out, const std::string& name, spec::RunSpec spec, const Fingerprints& inputs,
                const InputBook& book) {
  const record::RunFolder folder{out / name};
  const bool done = fs::exists(folder.done()), begun = fs::exists(folder.checkpoint());
  if (!fs::exists(folder.spec()) || (!done && !begun)) return {};
  if (!same_settings(folder, spec)) return {.what = Finding::kOutdated, .why = "its settings are others"};
  const auto before = book.of_run(name);
  const std::string changed = before ? changed_input(*before, inputs)
                                     : younger_input(spec, inputs, done ? folder.done() : folder.spec());
  if (!changed.empty()) {
    const bool start = changed.starts_with("model.");
    return {.what = Finding::kOutdated,
            .why = fmt::format("{} changed since", start ? "the model that it starts from" : changed)};
  }
  if (!done) return {.what = Finding::kUnfinished};
  Found found{.what = Finding::kDone};
  try {
    found.record = record::run_from_json(nlohmann::ordered_json::parse(read_file(folder.result(), "result")));
  } catch (const std::exception&) {
    return {.what = Finding::kOutdated, .why = "its result.json is damaged"};
  }
  const record::Provenance& by = found.record->provenance;
  found.seconds = seconds_of(*found.record, folder.done());
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
