#include "syncopate/tensor/safetensors.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/tensor/safetensors_header.h"
#include "syncopate/tensor/safetensors_types.h"

namespace syncopate::tensor {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path, "model file") {
  SafetensorsHeader header = parse_safetensors_header(file_.bytes(), path.string());
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
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
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::vector<at::Tensor> kept;
  size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto type = name_of_type(tensor.scalar_type());
    check(type.has_value(), "a tensor's type has no name in safetensors");
    check(!header.contains(name), "two tensors of one name for one file");
    kept.push_back(tensor.detach().to(at::kCPU).contiguous());
    const size_t size = kept.back().nbytes();
    header[name] = {
        {"dtype", *type}, {"shape", tensor.sizes().vec()}, {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data start on 8 bytes
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);

  std::vector<std::string_view> pieces = {length, text};
  for (const at::Tensor& tensor : kept) {
    if (tensor.nbytes() > 0)
      pieces.emplace_back(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  }
  write_file_atomically(path, pieces);
}

}  // namespace syncopate::tensor
