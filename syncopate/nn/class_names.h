#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace syncopate::nn {

class ConfigReader;

/// Reads "num_labels" and "id2label", {"0": "no", "1": "yes"}; where there are names, they say how many
/// classes. Throws DataError unless they are numbered 0, 1, 2, ...
void read_class_names(const ConfigReader& reader, int64_t& count, std::vector<std::string>& names);

/// Writes both "id2label" and "label2id", as transformers wants them.
void write_class_names(const std::vector<std::string>& names, nlohmann::json& object);

/// Throws ConfigError when there are names, but not one for each class.
void check_class_names(int64_t count, const std::vector<std::string>& names);

}  // namespace syncopate::nn
