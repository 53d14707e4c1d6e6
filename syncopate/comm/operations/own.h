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

/// Of an operation in which every rank has a tensor of its own.
inline void require_alike(const std::vector<at::Tensor>& list, const at::Tensor& tensor) {
  for (const at::Tensor& each : list)
    check(each.nbytes() == tensor.nbytes() && each.is_contiguous(), "all ranks' tensors have one size");
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
