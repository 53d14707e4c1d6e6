#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "syncopate/tensor/batch.h"

namespace syncopate::train {

/// Everything needed to go on as if never stopped: tensors (parameters, optimizer) and plain state (step,
/// loader position, epoch sums, random streams, machine). One safetensors file, replaced atomically; its
/// metadata hold a checksum over every byte of it.
struct Checkpoint {
  std::vector<tensor::NamedTensor> tensors;
  nlohmann::ordered_json state;
};

/// Throws DataError when the disk is full; the old checkpoint then still stands.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// Throws DataError when the file is missing, damaged in any byte, or of an older format.
Checkpoint load_checkpoint(const std::filesystem::path& path);

}  // namespace syncopate::train
