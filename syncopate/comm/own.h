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

/// Moving data needs no arithmetic, so every type may travel as bytes.
inline at::Tensor as_bytes(const at::Tensor& tensor) {
  return own(tensor).view({tensor.numel()}).view(at::kByte);
}

inline std::vector<at::Tensor> as_bytes(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> views;
  for (const at::Tensor& tensor : tensors) views.push_back(as_bytes(tensor));
  return views;
}

}  // namespace syncopate::comm
