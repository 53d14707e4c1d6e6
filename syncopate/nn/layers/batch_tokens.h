#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "syncopate/tensor/batch.h"

// What every transformer asks of a batch of texts.
namespace syncopate::nn {

/// Throws DataError for texts longer than the model has positions, and for token numbers outside its
/// vocabulary (`advice` says which tokenizer to use). On a device only its own kernels see wrong numbers: a
/// check would wait for it.
void check_tokens(const at::Tensor& ids_BL, int64_t max_positions, int64_t vocab_size, const char* advice);

/// What is added to attention scores: 0 where a position is real, the lowest number of the type where it is
/// padding. [B, L], contiguous, as our kernels read it; undefined when the batch has no padding.
at::Tensor additive_mask(const tensor::Batch& batch, const at::TensorOptions& options);

/// What enters `layer` of a transformer with `depth` layers, embeddings and head counted: an empty [B, L,
/// width] where the batch is. Layers 1 .. depth - 2 alone: a head may read fewer positions.
at::Tensor empty_states(const tensor::Batch& batch, int layer, int depth, int64_t width);

/// The next of a few lengths: within an eighth of `length`, or a multiple of 16.
int64_t common_length(int64_t length);
/// A batch of texts on the host with positions up to `length` (as many as it has, at least) that nobody
/// attends to or is asked about. What is asked at numbered positions ("masked") is padded to a multiple of 64
/// of them, too.
tensor::Batch padded(tensor::Batch batch, int64_t length, int64_t pad_token);

}  // namespace syncopate::nn
