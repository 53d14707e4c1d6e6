#include "syncopate/nn/config_reader.h"

#include "syncopate/base/file.h"

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

Activation ConfigReader::activation(const char* key, Activation otherwise) const {
  const std::string name = text(key, activation_name(otherwise));
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  throw DataError(
      "{}: the activation \"{}\" is not supported; models with gelu, gelu_new or gelu_pytorch_tanh are",
      where_, name);
}

void ConfigReader::expect_type(const char* ours, const char* otherwise) const {
  const std::string type = text("model_type", otherwise);
  if (type == ours) return;
  throw DataError("{}: not supported: model_type {}; this task takes a model of model_type {}", where_,
                  type.empty() ? "(none)" : type.substr(0, 60), ours);
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

json read_config_file(const std::filesystem::path& path) {
  json parsed = json::parse(read_file(path, "model configuration"), nullptr, false);
  if (parsed.is_discarded()) throw DataError("{} is not JSON; give a model's config.json", path.string());
  return parsed;
}

void check_size(const char* name, int64_t value) {
  constexpr int64_t kMost = int64_t{1} << 31;  // keeps every product of two sizes inside int64
  if (value < 1 || value > kMost) throw ConfigError("the model's {} must be 1 or more, got {}", name, value);
}

void check_rate(const char* name, double value) {
  if (!(value >= 0 && value < 1))
    throw ConfigError("the model's {} must be at least 0 and below 1, got {}", name, value);
}

}  // namespace syncopate::nn
