#include "syncopate/nn/resnet/resnet_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/nn/class_names.h"
#include "syncopate/nn/config_reader.h"
#include "syncopate/nn/presets.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;

constexpr const char* kType = "resnet-cifar";

const Presets<ResNetConfig>& presets() {
  static const Presets<ResNetConfig> all = [] {
    ResNetConfig small;
    small.widths = {16, 32, 64};
    small.blocks = 1;
    return Presets<ResNetConfig>{{"resnet-8", small}, {"resnet-18", ResNetConfig{}}};
  }();
  return all;
}

void check_count(const char* name, int64_t value) {
  constexpr int64_t kMost = int64_t{1} << 20;  // keeps every product of sizes inside int64
  if (value < 1 || value > kMost) {
    throw ConfigError("the model's {} must be from 1 to {}, got {}", name, kMost, value);
  }
}

/// An array of numbers, or text with commas between them.
std::vector<double> read_numbers(const ConfigReader& reader, const char* key) {
  const json* found = reader.find(key);
  std::vector<double> numbers;
  if (found == nullptr) return numbers;
  constexpr const char* kExpected = "one number for each channel";
  if (found->is_string()) {
    for (const std::string_view piece : split(found->get_ref<const std::string&>(), ',')) {
      const auto value = parse_number(trim(piece));
      if (!value) reader.wrong(key, kExpected);
      numbers.push_back(*value);
    }
    return numbers;
  }
  if (!found->is_array()) reader.wrong(key, kExpected);
  for (const json& each : *found) {
    if (!each.is_number()) reader.wrong(key, kExpected);
    numbers.push_back(each.get<double>());
  }
  return numbers;
}

}  // namespace

void ResNetConfig::validate() const {
  if (widths.empty()) throw ConfigError("the model's widths must name the channels of one stage or more");
  for (const int64_t width : widths) check_count("width", width);
  check_count("number of blocks", blocks);
  check_count("number of image channels", channels);
  check_count("image side", side);
  check_count("number of labels", num_labels);
  check_class_names(num_labels, labels);
  for (const auto* numbers : {&mean, &std}) {
    if (!numbers->empty() && static_cast<int64_t>(numbers->size()) != channels) {
      throw ConfigError("the images have {} channels but are normalised by {} numbers", channels,
                        numbers->size());
    }
  }
  if (std::any_of(std.begin(), std.end(), [](double each) { return !(each > 0) || !std::isfinite(each); })) {
    throw ConfigError("images are divided by deviations above 0 alone");
  }
}

std::vector<std::string> resnet_preset_names() { return presets().names(); }
bool is_resnet_preset(std::string_view name) { return presets().contains(name); }
ResNetConfig resnet_preset(std::string_view name) { return presets().at(name); }

ResNetConfig parse_resnet_config(const json& object, const std::string& where) {
  const ConfigReader reader(object, where);
  reader.expect_type(kType, "");
  reader.require({"widths", "blocks"}, kType);
  ResNetConfig config;
  config.widths.clear();
  const json& widths = *reader.find("widths");
  if (!widths.is_array()) reader.wrong("widths", "whole numbers, one for each stage");
  for (const json& width : widths) {
    if (!width.is_number_integer()) reader.wrong("widths", "whole numbers, one for each stage");
    config.widths.push_back(width.get<int64_t>());
  }
  reader.integer("blocks", config.blocks);
  reader.integer("num_channels", config.channels);
  reader.integer("image_size", config.side);
  config.mean = read_numbers(reader, "image_mean");
  config.std = read_numbers(reader, "image_std");
  read_class_names(reader, config.num_labels, config.labels);
  return validated(config, where);
}

ResNetConfig read_resnet_config(const std::filesystem::path& path) {
  return parse_resnet_config(read_config_file(path), path.string());
}

json resnet_config_to_json(const ResNetConfig& config) {
  json object = {
      {"model_type", kType},       {"widths", config.widths},
      {"blocks", config.blocks},   {"num_channels", config.channels},
      {"image_size", config.side}, {"num_labels", config.num_labels},
      {"torch_dtype", "float32"},
  };
  if (!config.mean.empty()) object["image_mean"] = config.mean;
  if (!config.std.empty()) object["image_std"] = config.std;
  write_class_names(config.labels, object);
  return object;
}

}  // namespace syncopate::nn
