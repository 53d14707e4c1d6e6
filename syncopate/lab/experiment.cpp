#include "syncopate/lab/experiment.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/run/device.h"
#include "syncopate/spec/effect.h"

namespace syncopate::lab {
namespace {

std::string text_of(const toml::node& node, const std::string& name) {
  if (const auto value = node.value<std::string>(); value && node.is_string()) return *value;
  if (node.is_boolean()) return *node.value<bool>() ? "true" : "false";
  if (node.is_integer()) return fmt::format("{}", *node.value<int64_t>());
  if (node.is_floating_point()) return fmt::format("{}", *node.value<double>());
  throw ConfigError("{} must be a text, a number or true/false", name);
}

using Names = std::vector<std::string>;

/// Applies a table's settings, and notes which they are; nested tables are dotted names.
void apply(const toml::table& table, const std::string& prefix, const Fields& fields, Names& given) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      apply(*inner, name + ".", fields, given);
    } else {
      given.push_back(fields.set(name, text_of(node, name)).name);
    }
  }
}

/// [settings]: what some rows heed and others may not.
struct Shared {
  const toml::table* table = nullptr;
  Names given{};
  std::set<std::string> heeded{};                ///< by a row at least
  std::map<std::string, std::string> without{};  ///< why a row does not heed it
};

/// Takes back what the row does not heed: it is there for others, and must not make this one another run.
void drop_unheeded(Shared& shared, spec::RunSpec& row) {
  Names unheeded;
  for (const std::string& name : shared.given) {
    if (const auto why = spec::no_effect(row, name)) {
      unheeded.push_back(name);
      shared.without[name] = *why;
    } else {
      shared.heeded.insert(name);
    }
  }
  spec::set_to_defaults(row, unheeded);
}

/// One [[phase]] or [[row]]: `shared` settings, then its own.
Experiment::Row read_row(const toml::node& node, Shared& shared, const std::vector<Experiment::Row>& phases) {
  Experiment::Row row;
  const Fields fields = row.spec.fields();
  Names given;
  shared.given.clear();
  if (shared.table != nullptr) apply(*shared.table, "", fields, shared.given);
  const toml::table* table = node.as_table();
  if (table == nullptr) throw ConfigError("it must be a table");
  toml::table own = *table;
  if (const toml::node* name = own.get("name")) {
    row.name = text_of(*name, "name");
    own.erase("name");
  }
  apply(own, "", fields, given);
  constexpr std::string_view kPhase = "phase:";
  if (std::string& from = row.spec.model.init_from; from.starts_with(kPhase)) {
    row.after = from.substr(kPhase.size());
    const auto same = [&](const Experiment::Row& phase) { return phase.name == *row.after; };
    if (std::none_of(phases.begin(), phases.end(), same)) {
      throw ConfigError("it starts from the phase \"{}\", but no [[phase]] before it has this name",
                        *row.after);
    }
  }
  row.spec.complete();
  spec::require_effect(row.spec, given);
  drop_unheeded(shared, row.spec);
  row.spec.validate();
  run::parse_device(row.spec.compute.device);
  return row;
}

std::vector<Experiment::Row> read_rows(const toml::table& file, const char* kind, const toml::table* settings,
                                       const std::vector<Experiment::Row>* phases,
                                       const std::filesystem::path& path) {
  std::vector<Experiment::Row> rows;
  Shared shared{.table = settings};
  const toml::array* list = file[kind].as_array();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    try {
      rows.push_back(read_row((*list)[i], shared, phases != nullptr ? *phases : rows));
      if (phases == nullptr && rows.back().name.empty()) throw ConfigError("a phase needs a name");
    } catch (const ConfigError& error) {
      throw ConfigError("{}, {} {}: {}", path.string(), kind, i + 1, error.what());
    }
  }
  for (const std::string& name : shared.given) {
    if (shared.heeded.contains(name)) continue;
    throw ConfigError("{}, settings: {} has no effect in any row: {}; leave it out", path.string(), name,
                      shared.without.at(name));
  }
  return rows;
}

/// What is compared trains and is tested on the same examples: where one row holds some out for validation,
/// so do all of its task and data.
void share_validation(std::vector<Experiment::Row>& rows, const std::filesystem::path& path) {
  const auto same_data = [](const Experiment::Row& a, const Experiment::Row& b) {
    return a.spec.task.name == b.spec.task.name && a.spec.task.data == b.spec.task.data;
  };
  const auto held_out = [](const Experiment::Row& row) {
    const spec::RunSpec::Validation validation = row.spec.validation();
    return validation.share > 0 ? fmt::format("{}", validation.share) : validation.path;
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string wanted;
    bool given = false;  // by a row that says so itself
    for (const Experiment::Row& other : rows) {
      if (!same_data(rows[i], other) || held_out(other).empty() || given) continue;
      wanted = held_out(other);
      given = other.spec.task.validation != "auto";
    }
    if (held_out(rows[i]) == wanted) continue;
    if (rows[i].spec.task.validation != "auto") {
      throw ConfigError(
          "{}, row {}: validation is {} here and {} in another row of the same data; rows that are compared "
          "hold out the same examples",
          path.string(), i + 1, rows[i].spec.task.validation, wanted);
    }
    rows[i].spec.task.validation = wanted;
  }
}

}  // namespace

Experiment read_experiment(const std::filesystem::path& path) {
  const std::string text = read_file(path, "experiment");
  toml::table file;
  try {
    file = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw DataError("{}:{}: {}; see experiments/quickstart.toml for the form", path.string(),
                    error.source().begin.line, error.description());
  }
  static const std::vector<std::string> known{"title", "cost", "settings", "phase", "row"};
  for (const auto& [key, node] : file) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw ConfigError("{}: unknown entry \"{}\"{}", path.string(), name, suggestion(name, known));
    }
  }
  Experiment experiment;
  experiment.title = file["title"].value_or(path.stem().string());
  experiment.cost = file["cost"].value_or(std::string());
  experiment.phases = read_rows(file, "phase", nullptr, nullptr, path);
  experiment.rows = read_rows(file, "row", file["settings"].as_table(), &experiment.phases, path);
  if (experiment.rows.empty()) {
    throw ConfigError("{} lists nothing to run; add [[row]] entries, each with a strategy and workers",
                      path.string());
  }
  int64_t largest = 1;
  bool batch_given = false;
  for (const auto& [name, spec, after] : experiment.rows) {
    batch_given = batch_given || spec.train.batch_size > 0 || spec.train.global_batch > 0;
    largest = std::max(largest, spec.examples_per_step());
  }
  for (Experiment::Row& row : experiment.rows) {
    if (!batch_given) row.spec.train.global_batch = largest;
  }
  share_validation(experiment.rows, path);
  return experiment;
}

}  // namespace syncopate::lab
