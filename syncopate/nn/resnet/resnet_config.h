#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::nn {

/// The shape of a residual network for small images, and what its images went through. The defaults are
/// resnet-18's.
struct ResNetConfig {
  std::vector<int64_t> widths = {64, 128, 256, 512};  ///< channels of each stage
  int64_t blocks = 2;                                 ///< in each stage
  int64_t channels = 3;                               ///< of an image
  int64_t side = 32;  ///< of the images it was trained on, in pixels; it takes others
  int64_t num_labels = 10;
  std::vector<std::string> labels;  ///< names of the classes, or empty
  std::vector<double> mean, std;    ///< what was taken off each channel and what it was divided by, or empty

  void validate() const;  ///< throws ConfigError

  friend bool operator==(const ResNetConfig&, const ResNetConfig&) = default;
};

/// "resnet-8", "resnet-18".
std::vector<std::string> resnet_preset_names();
bool is_resnet_preset(std::string_view name);
ResNetConfig resnet_preset(std::string_view name);  ///< throws ConfigError with a suggestion

/// A config.json of our own kind ("model_type": "resnet-cifar"). Faults are DataErrors that name the file.
ResNetConfig read_resnet_config(const std::filesystem::path& path);
ResNetConfig parse_resnet_config(const nlohmann::json& json, const std::string& where);
nlohmann::json resnet_config_to_json(const ResNetConfig& config);

}  // namespace syncopate::nn
