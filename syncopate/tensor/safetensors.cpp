#include "syncopate/tensor/safetensors.h"

#include <cstring>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/tensor/safetensors_header.h"

namespace syncopate::tensor {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path, "model file") {
  SafetensorsHeader header = parse_safetensors_header(file_.bytes(), path.string());
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
  header_ = file_.bytes().substr(0, header.size);
}

at::Tensor SafetensorsFile::read(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw DataError("{} has no tensor \"{}\"", path_.string(), name);
  const Info& info = found->second;
  at::Tensor tensor = at::empty(info.shape, at::TensorOptions().dtype(info.type));
  // The data need not be aligned in the file, hence bytes.
  if (info.end > info.begin) {
    std::memcpy(tensor.data_ptr(), file_.bytes().data() + info.begin, info.end - info.begin);
  }
  return tensor;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = safetensors_header(tensors, metadata);
  std::vector<at::Tensor> kept;
  std::vector<std::string_view> pieces = {header};
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().to(at::kCPU).contiguous());
    if (tensor.nbytes() > 0)
      pieces.emplace_back(static_cast<const char*>(kept.back().data_ptr()), kept.back().nbytes());
  }
  write_file_atomically(path, pieces);
}

}  // namespace syncopate::tensor
