#pragma once

#include <map>
#include <string>
#include <string_view>

#include "syncopate/tensor/safetensors.h"

namespace syncopate::tensor {

struct SafetensorsHeader {
  std::map<std::string, SafetensorsFile::Info> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads and checks the header of a whole file's bytes; `path` is for the sentences. Throws DataError.
SafetensorsHeader parse_safetensors_header(std::string_view bytes, const std::string& path);

}  // namespace syncopate::tensor
