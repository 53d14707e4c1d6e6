#include "syncopate/nn/class_names.h"

#include <map>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/nn/config_reader.h"

namespace syncopate::nn {

using nlohmann::json;

void read_class_names(const ConfigReader& reader, int64_t& count, std::vector<std::string>& names) {
  constexpr const char *kKey = "id2label", *kExpected = "an object from class numbers to names";
  reader.integer("num_labels", count);
  const json* found = reader.find(kKey);
  if (found == nullptr) return;
  if (!found->is_object()) reader.wrong(kKey, kExpected);
  std::map<int64_t, std::string> by_number;
  for (const auto& [number, name] : found->items()) {
    const auto id = parse_integer(number);
    if (!id || !name.is_string()) reader.wrong(kKey, kExpected);
    by_number[*id] = name.get<std::string>();
  }
  names.clear();
  for (const auto& [id, name] : by_number) {
    if (id != static_cast<int64_t>(names.size())) {
      throw DataError("{}: \"id2label\" must number the classes 0, 1, 2, ...; correct the file",
                      reader.where());
    }
    names.push_back(name);
  }
  count = static_cast<int64_t>(names.size());
}

void write_class_names(const std::vector<std::string>& names, json& object) {
  for (size_t i = 0; i < names.size(); ++i) {
    object["id2label"][std::to_string(i)] = names[i];
    object["label2id"][names[i]] = i;
  }
}

void check_class_names(int64_t count, const std::vector<std::string>& names) {
  if (!names.empty() && static_cast<int64_t>(names.size()) != count) {
    throw ConfigError("the model has {} labels but {} names for them", count, names.size());
  }
}

}  // namespace syncopate::nn
