#include "syncopate/lab/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/lab/comparison_settings.h"
#include "syncopate/lab/experiment_rules.h"

namespace syncopate::lab {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kSeed = "train.seed";

/// Runs `read` and says where it was where something is wrong.
template <typename Read>
auto at(const std::string& place, const Read& read) {
  try {
    return read();
  } catch (const ConfigError& error) {
    throw ConfigError("{}: {}", place, error.what());
  }
}

const Json& table_or_none(const Json& file, const char* name) {
  static const Json none = Json::object();
  if (!file.contains(name)) return none;
  if (!file[name].is_object()) throw ConfigError("{} must be a table: [{}]", name, name);
  return file[name];
}

/// A [[row]] or [[phase]] as it stands in the file.
struct Entry {
  std::string place;  ///< "row 2"
  std::string name;
  Settings own;
  Axes axes;                          ///< its own
  std::vector<std::string> borrowed;  ///< names of axes of the file, of a phase
};

Entry read_entry(const Json& json, std::string place) {
  Entry entry{.place = std::move(place), .name = {}, .own = {}, .axes = {}, .borrowed = {}};
  at(entry.place, [&] {
    if (!json.is_object()) throw ConfigError("it must be a table");
    Json own = json;
    if (own.contains("name")) {
      if (!own["name"].is_string()) throw ConfigError("name must be a text");
      entry.name = own["name"];
      own.erase("name");
    }
    if (own.contains("axes")) {
      if (own["axes"].is_array()) {
        for (const Json& name : own["axes"]) {
          if (!name.is_string()) throw ConfigError("axes must be a table, or a list of names of axes");
          entry.borrowed.push_back(dotted(name));
        }
      } else {
        entry.axes = read_axes(own["axes"]);
      }
      own.erase("axes");
    }
    entry.own = read_settings(own);
    for (const Axis& axis : entry.axes) {
      if (find(entry.own, axis.name) != nullptr)
        throw ConfigError("{} is both an axis and a setting; give one of them", axis.name);
    }
  });
  return entry;
}

std::vector<Entry> read_entries(const Json& file, const char* kind) {
  std::vector<Entry> entries;
  if (!file.contains(kind)) return entries;
  if (!file[kind].is_array()) throw ConfigError("{0} must be a list of tables: [[{0}]]", kind);
  for (const Json& json : file[kind])
    entries.push_back(read_entry(json, fmt::format("{} {}", kind, entries.size() + 1)));
  return entries;
}

/// The value of a setting in a spec, as text.
std::string value_in(spec::RunSpec spec, const std::string& name) {
  const Fields fields = spec.fields();
  return Fields::text_of(fields.find(name));
}

class Reader {
 public:
  Reader(const Json& file, const FileOptions& options) : file_(file), options_(options) {}

  Experiment read() {
    settings_ = at("settings", [&] { return read_settings(table_or_none(file_, "settings")); });
    axes_ = at("axes", [&] { return read_axes(table_or_none(file_, "axes")); });
    for (const Axis& axis : axes_) {
      if (find(settings_, axis.name) != nullptr)
        throw ConfigError("{} is both in [settings] and in [axes]; give one of them", axis.name);
    }
    phases_ = read_entries(file_, "phase");
    rows_ = read_entries(file_, "row");
    if (rows_.empty() && !axes_.empty())
      rows_.push_back({.place = "axes", .name = {}, .own = {}, .axes = {}, .borrowed = {}});
    if (rows_.empty())
      throw ConfigError(
          "it lists nothing to run; add [[row]] entries, each with a strategy and workers, or [axes]");
    find_tuned();
    take_assignments();
    require_countable();
    for (const Entry& phase : phases_) add_phase(phase);
    for (const Entry& row : rows_) add_row(row);
    require_heeded();
    return std::move(made_);
  }

 private:
  /// What [tune] chooses; the rest of it is read later.
  void find_tuned() {
    static const std::set<std::string> others{"seeds", "refine", "epochs", "steps", "validation"};
    for (const auto& [key, value] : table_or_none(file_, "tune").items()) {
      if (!others.contains(key)) tuned_ = at("tune", [&, &key = key] { return dotted(key); });
    }
  }

  /// --set: a value for all, or other values for an axis.
  void take_assignments() {
    for (const auto& [name, value] : options_.set) {
      at("--set " + name, [&, &name = name, &value = value] {
        const std::string setting = dotted(name);
        if (setting == tuned_)
          throw ConfigError("[tune] chooses it for each arm; take [tune] out of the file to set it yourself");
        bool axis = find(axes_, setting) != nullptr;
        override_axes(axes_, {setting, value});
        for (std::vector<Entry>* entries : {&phases_, &rows_}) {
          for (Entry& entry : *entries) {
            axis = axis || find(entry.axes, setting) != nullptr;
            override_axes(entry.axes, {setting, value});
          }
        }
        if (!axis) last_.push_back(canonical(name, value));
      });
    }
  }

  /// Before any of them is made, which takes its time.
  void require_countable() const {
    double count = 0;
    for (const Entry& row : rows_) count += count_combinations(axes_of(row));
    for (const Entry& phase : phases_) count += count_combinations(axes_of_phase(phase));
    if (count <= static_cast<double>(options_.most_runs)) return;
    throw ConfigError(
        "its axes make {:.0f} combinations; use fewer values, or allow them with --max-runs {:.0f}", count,
        count);
  }

  /// The file's axes save those that the row settles itself, then its own.
  Axes axes_of(const Entry& row) const {
    Axes axes;
    for (const Axis& axis : axes_) {
      const Axis* own = find(row.axes, axis.name);
      if (find(row.own, axis.name) == nullptr) axes.push_back(own != nullptr ? *own : axis);
    }
    for (const Axis& axis : row.axes) {
      if (find(axes, axis.name) == nullptr) axes.push_back(axis);
    }
    return axes;
  }

  /// The values that an axis has anywhere in the file.
  Axis borrowed(const std::string& name) const {
    Axis all{name, {}};
    const auto add = [&](const Axes& axes) {
      if (const Axis* axis = find(axes, name)) {
        for (const std::string& value : axis->values) {
          if (std::find(all.values.begin(), all.values.end(), value) == all.values.end())
            all.values.push_back(value);
        }
      }
    };
    add(axes_);
    for (const Entry& row : rows_) add(row.axes);
    if (all.values.empty()) throw ConfigError("{} is no axis of this file; list its values in [axes]", name);
    return all;
  }

  Axes axes_of_phase(const Entry& entry) const {
    return at(entry.place, [&] {
      Axes axes = entry.axes;
      for (const std::string& name : entry.borrowed) {
        if (find(entry.own, name) != nullptr)
          throw ConfigError("{} is both an axis and a setting; give one of them", name);
        axes.push_back(borrowed(name));
      }
      return axes;
    });
  }

  void add_phase(const Entry& entry) {
    const Axes axes = axes_of_phase(entry);
    at(entry.place, [&] {
      if (entry.name.empty()) throw ConfigError("a phase needs a name");
      for (const Experiment::Phase& other : made_.phases) {
        if (other.name == entry.name)
          throw ConfigError("another phase has the name \"{}\" already", entry.name);
      }
      Layers layers{.shared = {}, .own = entry.own, .axes = axes, .last = last_};
      for (const Axis& axis : axes) layers.own_axes.push_back(axis.name);
      std::vector<Experiment::Phase> runs;
      for (Combination& one : combinations(layers, heed_)) {
        Experiment::Phase phase{.name = entry.name, .axes = one.axes, .spec = one.spec, .after = {}};
        phase.after = start_of(phase.spec);
        runs.push_back(std::move(phase));
      }
      for (Experiment::Phase& run : runs) made_.phases.push_back(std::move(run));
    });
  }

  /// The run of the phase that a spec names which has the same values of the phase's axes.
  std::optional<size_t> start_of(const spec::RunSpec& spec) const {
    if (!spec.model.init_from.starts_with(kPhasePrefix)) return std::nullopt;
    const std::string name = spec.model.init_from.substr(kPhasePrefix.size());
    bool known = false;
    std::optional<size_t> found;
    std::set<std::string> settings;
    for (size_t i = 0; i < made_.phases.size(); ++i) {
      const Experiment::Phase& phase = made_.phases[i];
      if (phase.name != name) continue;
      known = true;
      bool fits = true;
      for (const Setting& axis : phase.axes) {
        settings.insert(axis.name);
        fits = fits && value_in(spec, axis.name) == axis.value;
      }
      if (fits && !found) found = i;
    }
    if (!known)
      throw ConfigError("it starts from the phase \"{}\", but no [[phase]] before it has this name", name);
    if (found) return found;
    std::vector<std::string> wanted;
    for (const std::string& setting : settings)
      wanted.push_back(fmt::format("{} = {}", setting, value_in(spec, setting)));
    throw ConfigError("it starts from the phase \"{}\", which is not run with {}; add that to its axes", name,
                      fmt::join(wanted, ", "));
  }

  void add_row(const Entry& entry) {
    at(entry.place, [&] {
      if (!entry.borrowed.empty())
        throw ConfigError("axes must be a table in a row: it has the file's axes anyway");
      Layers layers{.shared = settings_, .own = entry.own, .axes = axes_of(entry), .last = last_};
      std::vector<int64_t> seeds;
      if (const Axis* axis = find(layers.axes, kSeed)) {
        for (const std::string& value : axis->values) seeds.push_back(*parse_integer(value));
        std::erase_if(layers.axes, [](const Axis& each) { return each.name == kSeed; });
        heed_.note(kSeed, std::nullopt);
      }
      for (const Axis& axis : layers.axes) {
        note_axis(axis.name);
        if (find(entry.axes, axis.name) != nullptr) layers.own_axes.push_back(axis.name);
      }
      for (Combination& one : combinations(layers, heed_)) {
        Experiment::Arm arm{
            .place = entry.place, .row = entry.name.empty() ? one.spec.label() : entry.name, .name = {}};
        arm.axes = one.axes;
        arm.seeds = seeds.empty() ? std::vector<int64_t>{one.spec.train.seed} : seeds;
        arm.spec = one.spec;
        arm.spec.train.seed = arm.seeds.front();
        if (one.spec.model.init_from.starts_with(kPhasePrefix))
          arm.after = one.spec.model.init_from.substr(kPhasePrefix.size());
        for (const int64_t seed : arm.seeds) arm.starts.push_back(start_of(arm.with_seed(seed)));
        for (const Setting& setting : entry.own) arm.own.push_back(setting.name);
        if (!entry.name.empty() && find(entry.own, tuned_) != nullptr) arm.settles = tuned_;
        add_arm(std::move(arm));
      }
    });
  }

  /// Runs alike in all but the seed are one arm.
  void add_arm(Experiment::Arm arm) {
    const auto [found, fresh] = by_settings_.emplace(arm.identity(), made_.arms.size());
    if (fresh) {
      made_.arms.push_back(std::move(arm));
    } else {
      made_.arms[found->second].take_seeds(arm);
    }
  }

  void note_axis(const std::string& name) {
    if (std::find(made_.axes.begin(), made_.axes.end(), name) == made_.axes.end()) made_.axes.push_back(name);
  }

  void require_heeded() const {
    for (const Setting& setting : settings_) {
      if (const auto why = heed_.nobody(setting.name))
        throw ConfigError("settings: {} has no effect in any row: {}; leave it out", setting.name, *why);
    }
    const auto require_axes = [&](const std::string& place, const Axes& axes) {
      for (const Axis& axis : axes) {
        if (const auto why = heed_.nobody(axis.name))
          throw ConfigError("{}: {} has no effect in any row: {}; leave it out", place, axis.name, *why);
        const bool used = axis.name == kSeed ||
                          std::any_of(rows_.begin(), rows_.end(),
                                      [&](const Entry& row) { return find(row.own, axis.name) == nullptr; });
        if (!used) throw ConfigError("{}: every row sets {} itself; leave the axis out", place, axis.name);
      }
    };
    require_axes("axes", axes_);
    for (const Entry& row : rows_) require_axes(row.place, row.axes);
    for (const Setting& setting : last_) {
      if (const auto why = heed_.nobody(setting.name))
        throw ConfigError("--set {}: it has no effect in any run: {}", setting.name, *why);
    }
  }

  const Json& file_;
  const FileOptions& options_;
  Settings settings_, last_;
  std::string tuned_;  ///< the setting that [tune] chooses
  Axes axes_;
  std::vector<Entry> phases_, rows_;
  Heed heed_;
  Experiment made_;
  std::map<std::string, size_t> by_settings_;
};

}  // namespace

spec::RunSpec Experiment::Arm::with_seed(int64_t seed) const {
  spec::RunSpec copy = spec;
  copy.train.seed = seed;
  return copy;
}

std::string Experiment::Arm::identity() const {
  spec::RunSpec bare = with_seed(0);
  return bare.fields().to_json().dump() + settles;
}

void Experiment::Arm::take_seeds(const Arm& other) {
  for (size_t i = 0; i < other.seeds.size(); ++i) {
    if (std::find(seeds.begin(), seeds.end(), other.seeds[i]) != seeds.end()) {
      throw ConfigError(
          "it has the same settings as {}, seed {} too (\"{}\" and \"{}\"); leave one of them out", place,
          other.seeds[i], row, other.row);
    }
    seeds.push_back(other.seeds[i]);
    starts.push_back(other.starts[i]);
  }
  // "from scratch, seed 1" is called by its first seed no longer.
  const std::string suffix = fmt::format(", seed {}", seeds.front());
  if (row.ends_with(suffix)) row.resize(row.size() - suffix.size());
}

Experiment read_experiment(const std::filesystem::path& path, const FileOptions& options) {
  const Json file = read_experiment_file(path, options);
  try {
    static const std::vector<std::string> known{"title", "cost",   "settings", "axes", "phase", "row",
                                                "tune",  "target", "compare",  "size", "data"};
    for (const auto& [name, value] : file.items()) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw ConfigError("unknown entry \"{}\"{}", name, suggestion(name, known));
    }
    Experiment experiment = Reader(file, options).read();
    experiment.file = path;
    experiment.title = file.value("title", path.stem().string());
    experiment.cost = file.value("cost", std::string());
    share_batch(experiment);
    share_validation(experiment.arms);
    join_same(experiment.arms);
    name_arms(experiment.arms);
    drop_unused_phases(experiment);
    read_comparison(file, experiment);
    require_few(experiment, options.most_runs);
    return experiment;
  } catch (const ConfigError& error) {
    throw ConfigError("{}: {}", path.string(), error.what());
  } catch (const nlohmann::json::exception&) {
    throw ConfigError("{}: title and cost must be texts in quotes", path.string());
  }
}

}  // namespace syncopate::lab
