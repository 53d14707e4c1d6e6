#include "syncopate/nn/weight_files.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"

namespace syncopate::nn {
namespace {

using nlohmann::json;

void drop_prefix(std::string& name, std::string_view prefix) {
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
}

void swap_end(std::string& name, std::string_view from, std::string_view to) {
  if (name.ends_with(from)) name.replace(name.size() - from.size(), from.size(), to);
}

}  // namespace

std::string plain_weight_name(std::string name) {
  drop_prefix(name, "module.");
  drop_prefix(name, "bert.");
  drop_prefix(name, "transformer.");
  swap_end(name, ".gamma", ".weight");
  swap_end(name, ".beta", ".bias");
  return name;
}

WeightFiles::WeightFiles(const std::filesystem::path& folder) : folder_(folder) {
  if (std::filesystem::exists(folder / "model.safetensors")) {
    open(folder / "model.safetensors");
  } else if (std::filesystem::exists(folder / "model.safetensors.index.json")) {
    open_shards(folder / "model.safetensors.index.json");
  } else if (std::filesystem::exists(folder / "pytorch_model.bin")) {
    throw DataError(
        "{0} has its weights only as pytorch_model.bin, which is not read; convert it: python3 -c \"import "
        "torch, safetensors.torch as s; s.save_file({{k: v.clone() for k, v in torch.load('{0}/"
        "pytorch_model.bin', map_location='cpu', weights_only=True).items()}}, '{0}/model.safetensors', "
        "{{'format': 'pt'}})\"",
        folder.string());
  } else {
    throw DataError("{} has no model.safetensors; give a Hugging Face model folder", folder.string());
  }
}

void WeightFiles::open(const std::filesystem::path& path) {
  files_.push_back(std::make_unique<tensor::SafetensorsFile>(path));
  for (const auto& [name, info] : files_.back()->tensors()) {
    const auto [other, fresh] = places_.emplace(plain_weight_name(name), Place{files_.back().get(), name});
    if (!fresh) {
      throw DataError("{}: \"{}\" and \"{}\" of {} are the same tensor; keep one", path.string(), name,
                      other->second.name, other->second.file->path().string());
    }
  }
}

void WeightFiles::open_shards(const std::filesystem::path& index) {
  const json parsed = json::parse(read_file(index, "index of the model's shards"), nullptr, false);
  if (!parsed.is_object() || !parsed.contains("weight_map") || !parsed["weight_map"].is_object()) {
    throw DataError("{} has no \"weight_map\" from tensors to files; fetch it again", index.string());
  }
  std::set<std::string> shards;
  for (const auto& [name, shard] : parsed["weight_map"].items()) {
    const std::string file = shard.is_string() ? shard.get<std::string>() : "";
    if (file.empty() || file != std::filesystem::path(file).filename() || file == "." || file == "..") {
      throw DataError("{}: the file of tensor \"{}\" must be a plain name in the same folder", index.string(),
                      name);
    }
    shards.insert(file);
  }
  for (const std::string& shard : shards) {
    if (!std::filesystem::exists(folder_ / shard)) {
      throw DataError("{} names the shard {}, which is not there; fetch the missing file", index.string(),
                      shard);
    }
    open(folder_ / shard);
  }
  for (const auto& [name, shard] : parsed["weight_map"].items()) {
    const auto place = places_.find(plain_weight_name(name));
    if (place == places_.end() || place->second.file->path().filename() != shard.get<std::string>()) {
      throw DataError("{} places tensor \"{}\" in {}, which does not have it; fetch both files again",
                      index.string(), name, shard.get<std::string>());
    }
  }
}

const std::vector<int64_t>& WeightFiles::shape(const std::string& name) const {
  const Place& place = places_.at(name);
  return place.file->tensors().at(place.name).shape;
}

at::Tensor WeightFiles::read(const std::string& name, at::IntArrayRef shape) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    throw DataError("{} lacks the tensor \"{}\" that its config.json asks for; fetch the folder again",
                    folder_.string(), name);
  }
  const auto& [file, spelled] = found->second;
  const auto& info = file->tensors().at(spelled);
  if (!c10::isFloatingType(info.type)) {
    throw DataError("{}: tensor \"{}\" holds {} instead of floating-point numbers", file->path().string(),
                    spelled, c10::toString(info.type));
  }
  if (at::IntArrayRef(info.shape) != shape) {
    throw DataError(
        "{}: tensor \"{}\" has the shape [{}] but config.json makes it [{}]; use the config.json of this "
        "model",
        file->path().string(), spelled, fmt::join(info.shape, ", "), fmt::join(shape, ", "));
  }
  return file->read(spelled).to(at::kFloat);
}

void WeightFiles::require_words(const std::string& name, int64_t vocab_size) const {
  if (!contains(name) || shape(name).size() != 2 || shape(name)[0] == vocab_size) return;
  throw DataError(
      "{}: the weights have {} word embeddings but config.json says vocab_size {}; use the config.json of "
      "this "
      "model",
      folder_.string(), shape(name)[0], vocab_size);
}

std::vector<std::string> WeightFiles::names() const {
  std::vector<std::string> all;
  for (const auto& [name, place] : places_) all.push_back(name);
  return all;
}

}  // namespace syncopate::nn
