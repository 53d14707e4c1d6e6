#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/base/file.h"
#include "syncopate/base/mapped_file.h"
#include "syncopate/tensor/batch.h"

namespace syncopate::tensor {

/// A safetensors file: 8 bytes of header length, a JSON header, then the tensors' bytes without holes. The
/// header is checked whole when the file is opened (lengths, offsets, overlaps, shapes), so that reading a
/// tensor later cannot leave the file. Types: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL. Every fault is a
/// DataError.
class SafetensorsFile {
 public:
  struct Info {
    at::ScalarType type = at::kFloat;
    std::vector<int64_t> shape;
    size_t begin = 0;  ///< bytes into the file
    size_t end = 0;
  };

  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, Info>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::string_view header() const { return header_; }  ///< all that precedes the data, as the file has it
  bool contains(const std::string& name) const { return tensors_.contains(name); }

  at::Tensor read(const std::string& name) const;  ///< a copy of its own, in the file's type

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::string_view header_;
  std::map<std::string, Info> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes `tensors` in the order given, from any device and layout; the file appears whole or not at all.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace syncopate::tensor
