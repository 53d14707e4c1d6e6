#include "syncopate/nn/config_reader.h"

#include "syncopate/base/error.h"

namespace syncopate::nn {

using nlohmann::json;

ConfigReader::ConfigReader(const json& object, const std::string& where) : object_(object), where_(where) {
  if (!object.is_object()) throw DataError("{} is not a JSON object; give a model's config.json", where);
}

const json* ConfigReader::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigReader::integer(const char* key, int64_t& into) const {
  const json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_number_integer()) wrong(key, "a whole number");
  into = value->get<int64_t>();
}

void ConfigReader::number(const char* key, double& into) const {
  const json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_number()) wrong(key, "a number");
  into = value->get<double>();
}

bool ConfigReader::flag(const char* key, bool otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) wrong(key, "true or false");
  return value->get<bool>();
}

std::string ConfigReader::text(const char* key, const std::string& otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) wrong(key, "text");
  return value->get<std::string>();
}

void ConfigReader::require(std::initializer_list<const char*> keys, const char* model) const {
  for (const char* key : keys) {
    if (find(key) == nullptr) {
      throw DataError("{} has no \"{}\"; give a {} model's config.json", where_, key, model);
    }
  }
}

void ConfigReader::wrong(const char* key, const char* expected) const {
  throw DataError("{}: \"{}\" must be {}; correct the file", where_, key, expected);
}

}  // namespace syncopate::nn
