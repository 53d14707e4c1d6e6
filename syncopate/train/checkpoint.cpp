#include "syncopate/train/checkpoint.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/tensor/safetensors.h"

namespace syncopate::train {
namespace {

std::string checksum_of(const std::vector<tensor::NamedTensor>& tensors, const std::string& state) {
  uint64_t sum = checksum(state);
  for (const auto& [name, value] : tensors) {
    sum = checksum(fmt::format("{}[{}]", name, fmt::join(value.sizes(), ",")), sum);
    const at::Tensor whole = value.to(at::kCPU).contiguous();
    sum = checksum({static_cast<const char*>(whole.data_ptr()), whole.nbytes()}, sum);
  }
  return fmt::format("{:016x}", sum);
}

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& why) {
  throw DataError(
      "the checkpoint {} is damaged ({}); start again without --resume, or restore it from a copy",
      path.string(), why);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  const std::string state = checkpoint.state.dump();
  std::vector<tensor::NamedTensor> tensors = checkpoint.tensors;  // by name, as a reader finds them
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  tensor::write_safetensors(
      path, tensors,
      {{"format", "syncopate-checkpoint-1"}, {"state", state}, {"checksum", checksum_of(tensors, state)}});
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    throw DataError("there is no checkpoint at {}; run without --resume to start", path.string());
  }
  Checkpoint checkpoint;
  std::string state, sum;
  try {
    const tensor::SafetensorsFile file(path);
    const auto& metadata = file.metadata();
    if (!metadata.contains("state") || !metadata.contains("checksum"))
      damaged(path, "it holds no training state");
    state = metadata.at("state");
    sum = metadata.at("checksum");
    for (const auto& [name, info] : file.tensors()) checkpoint.tensors.push_back({name, file.read(name)});
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find("is damaged (") != std::string_view::npos) throw;
    damaged(path, error.what());
  }
  if (checksum_of(checkpoint.tensors, state) != sum) damaged(path, "its checksum does not match");
  checkpoint.state = nlohmann::ordered_json::parse(state);
  return checkpoint;
}

void restore_tensors(const std::vector<tensor::NamedTensor>& from,
                     const std::vector<tensor::NamedTensor>& into, const std::filesystem::path& path) {
  for (const auto& [name, target] : into) {
    const tensor::NamedTensor* found = nullptr;
    for (const auto& candidate : from) found = candidate.name == name ? &candidate : found;
    if (found == nullptr || found->tensor.sizes() != target.sizes()) {
      throw DataError(
          "the checkpoint {} does not fit this run: {} is {}; resume with the model and optimizer it was "
          "made with",
          path.string(), name, found == nullptr ? "missing" : "of another shape");
    }
    at::Tensor(target).detach().copy_(found->tensor);
  }
}

}  // namespace syncopate::train
