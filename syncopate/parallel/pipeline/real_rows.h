#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "syncopate/tensor/batch.h"

namespace syncopate::parallel {

/// Which rows of a hidden state are real, example by example. Rows are tokens of [B, L, C], pixels of
/// [B, C, H, W] or the examples of [B, C].
struct RealRows {
  struct Run {
    int64_t first, rows;  ///< in the matrix of all rows
  };
  struct Example {
    std::vector<Run> runs;
    int64_t rows = 0;
  };

  std::vector<Example> examples;
  int64_t channels = 0;
  int64_t rows = 0;      ///< real ones
  int64_t all_rows = 0;  ///< with padding
};

/// By the batch's "attention_mask", where it has one and rows are tokens.
RealRows real_rows(const at::Tensor& like, const tensor::Batch& batch);

/// [rows, channels], contiguous; the tensor's own memory where it lies so (channels last, of images).
at::Tensor as_matrix(const at::Tensor& hidden);
/// The other way: shaped and laid out like `like`.
at::Tensor from_matrix(const at::Tensor& matrix, const at::Tensor& like);

/// A hash of each example's content: its real tokens, or its pixels; 0 where a batch has neither.
std::vector<uint64_t> contents(const tensor::Batch& batch);

}  // namespace syncopate::parallel
