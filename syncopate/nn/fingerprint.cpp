#include "syncopate/nn/fingerprint.h"

#include <ATen/ATen.h>

#include "syncopate/base/hash.h"

namespace syncopate::nn {

std::string fingerprint(const Model& model) {
  uint64_t hash = 0;
  for (const auto& tensors : {model.parameters(), model.buffers()}) {
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor values = tensor.detach().to(at::kCPU).contiguous();
      hash = checksum({static_cast<const char*>(values.data_ptr()), values.nbytes()}, checksum(name, hash));
    }
  }
  return hexadecimal(hash);
}

}  // namespace syncopate::nn
