#include "syncopate/lab/inputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/mapped_file.h"
#include "syncopate/network/topology.h"
#include "syncopate/record/run_folder.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::lab {
namespace {

namespace fs = std::filesystem;
using SortedJson = nlohmann::json;  // there may be ten thousand runs
constexpr const char* kBookFormat = "syncopate-inputs-1";

SortedJson read_book(const fs::path& file) {
  SortedJson book{{"format", kBookFormat},
                  {"files", SortedJson::object()},
                  {"runs", SortedJson::object()},
                  {"made", SortedJson::object()}};
  if (!fs::exists(file)) return book;
  const SortedJson found = SortedJson::parse(read_file(file, "book of inputs"), nullptr, false);
  if (!found.is_object() || found.value("format", SortedJson()) != kBookFormat) return book;
  for (const char* part : {"files", "runs", "made"}) {
    if (found.contains(part) && found[part].is_object()) book[part] = found[part];
  }
  return book;
}

/// Of a run's folder its model; of anything else the thing itself.
fs::path model_at(const fs::path& path) {
  const record::RunFolder run{path};
  return fs::is_directory(run.model()) ? run.model() : path;
}

/// Size and time of the last change, in one word.
std::string stamp_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    throw DataError("cannot read {}; check that it is still there", path.string());
  return fmt::format("{}-{}.{:09}", found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

std::vector<fs::path> files_in(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    const fs::path& at = error.path1().empty() ? path : error.path1();
    throw DataError("cannot read {}: {}; check who may read it, or take it out of {}", at.string(),
                    error.code().message(), path.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

uint64_t content_of(const fs::path& path) {
  if (fs::file_size(path) == 0) return checksum("");
  const MappedFile file(path, "input");
  return checksum(file.bytes());
}

}  // namespace

InputBook::InputBook(fs::path file)
    : file_(std::move(file)), book_(std::make_unique<SortedJson>(read_book(file_))) {}
InputBook::~InputBook() = default;

std::string InputBook::hash_of(const fs::path& path) {
  uint64_t sum = 0;
  SortedJson& known = (*book_)["files"];
  for (const fs::path& file : files_in(path)) {
    const std::string name = fs::absolute(file).lexically_normal().string(), stamp = stamp_of(file);
    SortedJson& entry = known[name];
    if (!entry.is_object() || entry.value("stamp", "") != stamp) {
      entry = {{"stamp", stamp}, {"hash", hexadecimal(content_of(file))}};
      changed_ = true;
    }
    const std::string where = file == path ? "" : file.lexically_relative(path).string();
    sum = checksum(where + "\n" + entry.at("hash").get<std::string>(), sum);
  }
  return hexadecimal(sum);
}

Fingerprints InputBook::now(const spec::RunSpec& spec) {
  Fingerprints found;
  const auto take = [&](const char* setting, const fs::path& path) {
    if (!path.empty() && fs::exists(path)) found[setting] = hash_of(path);
  };
  take("task.data", spec.task.data);
  take("task.validation", spec.validation().path);
  take("model.vocab", spec.model.vocab);
  const auto& networks = network::preset_names();
  if (std::find(networks.begin(), networks.end(), spec.network.name) == networks.end())
    take("network.name", spec.network.name);
  const auto presets = spec::model_names();
  if (std::find(presets.begin(), presets.end(), spec.model.name) == presets.end())
    take("model.name", model_at(spec.model.name));
  take("model.init_from", model_at(spec.model.init_from));
  return found;
}

std::optional<Fingerprints> InputBook::of_run(const std::string& folder) const {
  const SortedJson& runs = book_->at("runs");
  if (!runs.contains(folder) || !runs.at(folder).is_object()) return std::nullopt;
  Fingerprints found;
  for (const auto& [setting, hash] : runs.at(folder).items()) {
    if (hash.is_string()) found[setting] = hash;
  }
  return found;
}

void InputBook::note(const std::string& folder, const Fingerprints& inputs) {
  if (inputs.empty() && !book_->at("runs").contains(folder)) return;
  SortedJson& entry = (*book_)["runs"][folder];
  const SortedJson fresh = inputs.empty() ? SortedJson::object() : SortedJson(inputs);
  if (entry == fresh) return;
  entry = fresh;
  changed_ = true;
}

Made InputBook::made(const std::string& folder) const {
  const SortedJson& all = book_->at("made");
  const auto found = all.find(folder);
  if (found == all.end() || !found->is_object()) return {};
  const SortedJson alone = found->value("alone", SortedJson(true)),
                   seconds = found->value("seconds", SortedJson(0));
  return {.alone = !alone.is_boolean() || alone.get<bool>(),
          .seconds = seconds.is_number() ? seconds.get<double>() : 0};
}

void InputBook::note(const std::string& folder, const Made& made) {
  SortedJson& all = (*book_)["made"];
  const SortedJson fresh{{"alone", made.alone}, {"seconds", made.seconds}};
  if (all.contains(folder) && all[folder] == fresh) return;
  all[folder] = fresh;
  changed_ = true;
}

void InputBook::save() {
  if (!changed_) return;
  write_file_atomically(file_, book_->dump(1, ' ', false, SortedJson::error_handler_t::replace) + "\n");
  changed_ = false;
}

}  // namespace syncopate::lab
