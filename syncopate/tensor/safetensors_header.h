#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/tensor/safetensors.h"

namespace syncopate::tensor {

struct SafetensorsHeader {
  std::map<std::string, SafetensorsFile::Info> tensors;
  std::map<std::string, std::string> metadata;
  size_t size = 0;  ///< bytes before the data
};

/// Reads and checks the header of a whole file's bytes; `path` is for the sentences. Throws DataError.
SafetensorsHeader parse_safetensors_header(std::string_view bytes, const std::string& path);

/// What `write_safetensors` puts before the data: the header's length and the header, filled up with spaces
/// so that the data start on 8 bytes.
std::string safetensors_header(const std::vector<NamedTensor>& tensors,
                               const std::map<std::string, std::string>& metadata);

}  // namespace syncopate::tensor
