#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "syncopate/base/error.h"

namespace syncopate::comm {

/// What an operation keeps of a caller's tensor: its memory, without what autograd knows of it.
inline at::Tensor own(const at::Tensor& tensor) {
  check(tensor.is_contiguous(), "a group takes contiguous tensors");
  return tensor.detach();
}

inline std::vector<at::Tensor> own(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> mine;
  for (const at::Tensor& tensor : tensors) mine.push_back(own(tensor));
  return mine;
}

}  // namespace syncopate::comm
