#include "syncopate/lab/experiment.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"

namespace syncopate::lab {
namespace {

std::string text_of(const toml::node& node, const std::string& name) {
  if (const auto value = node.value<std::string>(); value && node.is_string()) return *value;
  if (node.is_boolean()) return *node.value<bool>() ? "true" : "false";
  if (node.is_integer()) return fmt::format("{}", *node.value<int64_t>());
  if (node.is_floating_point()) return fmt::format("{}", *node.value<double>());
  throw ConfigError("{} must be a text, a number or true/false", name);
}

/// Applies a table's settings; nested tables are dotted names.
void apply(const toml::table& table, const std::string& prefix, const Fields& fields) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      apply(*inner, name + ".", fields);
    } else {
      fields.set(name, text_of(node, name));
    }
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
  static const std::vector<std::string> known{"title", "cost", "settings", "row"};
  for (const auto& [key, node] : file) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw ConfigError("{}: unknown entry \"{}\"{}", path.string(), name, suggestion(name, known));
    }
  }
  Experiment experiment;
  experiment.title = file["title"].value_or(path.stem().string());
  experiment.cost = file["cost"].value_or(std::string());
  const toml::array* rows = file["row"].as_array();
  if (rows == nullptr || rows->empty()) {
    throw ConfigError("{} lists nothing to run; add [[row]] entries, each with a strategy and workers",
                      path.string());
  }
  int number = 0;
  for (const toml::node& row : *rows) {
    ++number;
    run::RunSpec spec;
    const Fields fields = spec.fields();
    try {
      if (const toml::table* settings = file["settings"].as_table()) apply(*settings, "", fields);
      const toml::table* changes = row.as_table();
      if (changes == nullptr) throw ConfigError("a row must be a table");
      apply(*changes, "", fields);
      spec.validate();
    } catch (const ConfigError& error) {
      throw ConfigError("{}, row {}: {}", path.string(), number, error.what());
    }
    experiment.rows.push_back(spec);
  }
  int64_t largest = 1;
  bool batch_given = false;
  for (const run::RunSpec& spec : experiment.rows) {
    batch_given = batch_given || spec.train.batch_size > 0 || spec.train.global_batch > 0;
    largest = std::max(largest, spec.examples_per_step());
  }
  for (run::RunSpec& spec : experiment.rows) {
    if (!batch_given) spec.train.global_batch = largest;
  }
  return experiment;
}

}  // namespace syncopate::lab
