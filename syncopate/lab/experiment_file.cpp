#include "syncopate/lab/experiment_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"

namespace syncopate::lab {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const toml::node& node, const std::string& name);

/// toml++ sorts a table by its keys; people mean the order that they wrote.
Json to_json(const toml::table& table, const std::string& prefix) {
  std::vector<std::pair<std::string, const toml::node*>> entries;
  for (const auto& [key, node] : table) entries.emplace_back(std::string(key.str()), &node);
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    const auto &first = a.second->source().begin, &second = b.second->source().begin;
    return std::pair(first.line, first.column) < std::pair(second.line, second.column);
  });
  Json json = Json::object();
  for (const auto& [key, node] : entries) json[key] = to_json(*node, prefix + key);
  return json;
}

Json to_json(const toml::node& node, const std::string& name) {
  if (const toml::table* table = node.as_table()) return to_json(*table, name + ".");
  if (const toml::array* list = node.as_array()) {
    Json json = Json::array();
    for (const toml::node& value : *list) json.push_back(to_json(value, name));
    return json;
  }
  if (node.is_string()) return *node.value<std::string>();
  if (node.is_boolean()) return *node.value<bool>();
  if (node.is_integer()) return *node.value<int64_t>();
  if (node.is_floating_point()) return *node.value<double>();
  throw ConfigError("line {}: {} must be a text, a number or true/false", node.source().begin.line, name);
}

void replace(std::string& text, const std::string& name, const std::string& path) {
  const std::string mark = "{" + name + "}";
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + path.size()))
    text.replace(at, mark.size(), path);
}

void replace_in(Json& value, const Json& paths) {
  if (value.is_string()) {
    std::string text = value;
    for (const auto& [name, path] : paths.items()) {
      if (!path.get_ref<const std::string&>().empty()) replace(text, name, path);
    }
    value = text;
  }
  if (!value.is_structured()) return;
  for (Json& inner : value) replace_in(inner, paths);
}

/// Takes [size] out of the file and lays the one that was asked for over the rest.
void choose_size(Json& file, const std::string& size) {
  Json sizes = Json::object();
  if (file.contains("size")) sizes = file["size"];
  file.erase("size");
  if (!sizes.is_object()) throw ConfigError("size must be tables: [size.gpu.settings]");
  for (const auto& [name, table] : sizes.items()) {
    if (!table.is_object())
      throw ConfigError("size: {0} must be a table of what it changes: [size.{0}.settings]", name);
  }
  if (size.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, table] : sizes.items()) names.push_back(name);
  if (names.empty()) throw ConfigError("there is no [size.{}]; run it without --size", size);
  if (!sizes.contains(size)) throw ConfigError("there is no [size.{}]{}", size, suggestion(size, names));
  merge(file, sizes[size]);
}

/// Puts paths in the place of their names.
void fill_in_data(Json& file, const std::vector<std::pair<std::string, std::string>>& given) {
  Json paths = Json::object();
  if (file.contains("data")) paths = file["data"];
  file.erase("data");
  if (!paths.is_object()) throw ConfigError("data must be a table of names and paths");
  std::vector<std::string> names;
  for (const auto& [name, path] : paths.items()) {
    if (!path.is_string()) throw ConfigError("data: {} must be a path in quotes", name);
    names.push_back(name);
  }
  for (const auto& [name, path] : given) {
    if (names.empty()) throw ConfigError("--data {}={}: the file has no [data]", name, path);
    if (!paths.contains(name)) throw ConfigError("[data] has no {}{}", name, suggestion(name, names));
    paths[name] = path;
  }
  replace_in(file, paths);
}

}  // namespace

void merge(Json& base, const Json& over) {
  for (const auto& [key, value] : over.items()) {
    if (!value.is_object() || !base.contains(key)) {
      base[key] = value;
    } else if (Json& under = base[key]; under.is_array()) {
      for (const auto& [name, table] : value.items()) {
        const auto same = [&name = name](const Json& entry) {
          return entry.is_object() && entry.contains("name") && entry["name"] == name;
        };
        if (!table.is_object())
          throw ConfigError("size: {0}.{1} must be a table of what it changes: [size.NAME.{0}.{1}]", key,
                            name);
        const auto found = std::find_if(under.begin(), under.end(), same);
        if (found == under.end())
          throw ConfigError("size: there is no {} with the name \"{}\" to change", key, name);
        merge(*found, table);
      }
    } else if (under.is_object()) {
      merge(under, value);
    } else {
      under = value;
    }
  }
}

Json read_experiment_file(const std::filesystem::path& path, const FileOptions& options) {
  const std::string text = read_file(path, "experiment");
  try {
    const toml::table parsed = toml::parse(text);
    Json file = to_json(parsed, "");
    choose_size(file, options.size);
    fill_in_data(file, options.data);
    return file;
  } catch (const toml::parse_error& error) {
    throw DataError("{}:{}: {}; see experiments/quickstart.toml for the form", path.string(),
                    error.source().begin.line, error.description());
  } catch (const ConfigError& error) {
    throw ConfigError("{}: {}", path.string(), error.what());
  }
}

}  // namespace syncopate::lab
