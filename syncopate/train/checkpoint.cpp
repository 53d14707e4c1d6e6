#include "syncopate/train/checkpoint.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/tensor/safetensors.h"
#include "syncopate/tensor/safetensors_header.h"

namespace syncopate::train {
namespace {

constexpr std::string_view kFormat = "syncopate-checkpoint-3";
/// Stands in the place of the checksum in the header that is summed.
constexpr std::string_view kNoSum = "0000000000000000";

/// Over the header, in which kNoSum stands for the checksum, and the data.
std::string checksum_of(std::string_view header, const std::vector<tensor::NamedTensor>& tensors) {
  uint64_t sum = checksum(header);
  for (const auto& [name, value] : tensors)
    sum = checksum({static_cast<const char*>(value.data_ptr()), value.nbytes()}, sum);
  return hexadecimal(sum);
}

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& why) {
  throw DataError("the checkpoint {} is damaged ({}); start the run again, or restore it from a copy",
                  path.string(), why);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  std::vector<tensor::NamedTensor> tensors;
  for (const auto& [name, value] : checkpoint.tensors)
    tensors.push_back({name, value.detach().to(at::kCPU).contiguous()});
  // By name, as a reader finds them.
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::map<std::string, std::string> metadata{{"format", std::string(kFormat)},
                                              {"state", checkpoint.state.dump()},
                                              {"checksum", std::string(kNoSum)}};
  metadata["checksum"] = checksum_of(tensor::safetensors_header(tensors, metadata), tensors);
  tensor::write_safetensors(path, tensors, metadata);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    throw DataError("there is no checkpoint at {}; start a new run instead of resuming", path.string());
  }
  Checkpoint checkpoint;
  std::string header;
  std::map<std::string, std::string> metadata;
  try {
    const tensor::SafetensorsFile file(path);
    metadata = file.metadata();
    header = file.header();
    for (const auto& [name, info] : file.tensors()) checkpoint.tensors.push_back({name, file.read(name)});
  } catch (const DataError& error) {
    damaged(path, error.what());
  }
  for (const char* key : {"format", "state", "checksum"}) {
    if (!metadata.contains(key)) damaged(path, "it holds no training state");
  }
  if (metadata["format"] != kFormat && metadata["format"].starts_with("syncopate-checkpoint-")) {
    throw DataError(
        "the checkpoint {} has the format {}, but this version of Syncopate reads {}; finish the run with "
        "the version that wrote it, or start it again",
        path.string(), metadata["format"], kFormat);
  }
  const std::string stated = fmt::format("\"checksum\":\"{}\"", metadata["checksum"]);
  const size_t at = header.find(stated);
  if (at != std::string::npos) header.replace(at, stated.size(), fmt::format("\"checksum\":\"{}\"", kNoSum));
  if (checksum_of(header, checkpoint.tensors) != metadata["checksum"])
    damaged(path, "its checksum does not match");
  checkpoint.state = nlohmann::ordered_json::parse(metadata["state"]);
  return checkpoint;
}

}  // namespace syncopate::train
