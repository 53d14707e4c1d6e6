#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/tensor/safetensors.h"

namespace syncopate::nn {

/// The tensors of a model folder, from one safetensors file or several, by the names that parameters() uses:
/// without a leading "module.", "bert." or "transformer.", LayerNorm's gamma and beta as weight and bias.
class WeightFiles {
 public:
  explicit WeightFiles(const std::filesystem::path& folder);  ///< throws DataError

  bool contains(const std::string& name) const { return places_.contains(name); }
  const std::vector<int64_t>& shape(const std::string& name) const;
  /// In fp32. Throws DataError when the tensor is absent, is not floating point or has another shape.
  at::Tensor read(const std::string& name, at::IntArrayRef shape) const;
  /// Throws DataError when the table of words `name` is there and has other than `vocab_size` rows.
  void require_words(const std::string& name, int64_t vocab_size) const;
  std::vector<std::string> names() const;

 private:
  struct Place {
    const tensor::SafetensorsFile* file = nullptr;
    std::string name;  ///< as the file spells it
  };

  void open(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& index);

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<tensor::SafetensorsFile>> files_;
  std::map<std::string, Place> places_;
};

/// The name without what differs between files of the same model.
std::string plain_weight_name(std::string name);

}  // namespace syncopate::nn
