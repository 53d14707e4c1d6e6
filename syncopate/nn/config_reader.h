#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/nn/activation.h"

namespace syncopate::nn {

/// Reads keys of a model's config.json; absent and null keys leave the default, a key of the wrong kind is a
/// DataError that names the file.
class ConfigReader {
 public:
  /// Both must outlive the reader. Throws DataError when `object` is no JSON object.
  ConfigReader(const nlohmann::json& object, const std::string& where);

  const nlohmann::json* find(const char* key) const;  ///< null when absent
  void integer(const char* key, int64_t& into) const;
  void number(const char* key, double& into) const;
  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;
  Activation activation(const char* key, Activation otherwise) const;
  /// Throws DataError unless "model_type", `otherwise` where it is absent, is `ours`.
  void expect_type(const char* ours, const char* otherwise) const;
  void require(std::initializer_list<const char*> keys, const char* model) const;
  [[noreturn]] void wrong(const char* key, const char* expected) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& object_;
  const std::string& where_;
};

/// A model's config.json as JSON. Throws DataError.
nlohmann::json read_config_file(const std::filesystem::path& path);

/// Throw ConfigError for a size of a model that is not positive or would overflow products of two, and for a
/// rate outside [0, 1).
void check_size(const char* name, int64_t value);
void check_rate(const char* name, double value);

/// `config` after its validate(); what that says becomes a DataError of the file.
template <typename Config>
Config validated(Config config, const std::string& where) {
  try {
    config.validate();
  } catch (const ConfigError& error) {
    throw DataError("{}: {}", where, error.what());
  }
  return config;
}

}  // namespace syncopate::nn
