#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

// The text of an experiment file, before anybody asks what it means.
namespace syncopate::lab {

/// What a command says beside the file. Names are as they were given.
struct FileOptions {
  std::string size;                                         ///< --size; empty: the file as it stands
  std::vector<std::pair<std::string, std::string>> data{};  ///< --data NAME=PATH
  std::vector<std::pair<std::string, std::string>> set{};   ///< --set NAME=VALUE
  int64_t most_runs = 10000;                                ///< --max-runs
};

/// The file as JSON, its entries in the file's order. [size.NAME] is merged over it where `size` asks for
/// that, and {NAME} in a text is the path that [data] or `data` gives; one that neither gives stays as it is.
/// Throws DataError when the file is not TOML, ConfigError for a size or a name that is not there.
nlohmann::ordered_json read_experiment_file(const std::filesystem::path& path, const FileOptions& options);

/// Lays `over` on `base`: tables are merged, all else is replaced. A table over a list of tables goes to
/// those of its names: [size.gpu.phase.books] to the phase "books".
void merge(nlohmann::ordered_json& base, const nlohmann::ordered_json& over);

}  // namespace syncopate::lab
