#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

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
  void require(std::initializer_list<const char*> keys, const char* model) const;
  [[noreturn]] void wrong(const char* key, const char* expected) const;

 private:
  const nlohmann::json& object_;
  const std::string& where_;
};

}  // namespace syncopate::nn
