#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace syncopate::tensor {

/// What a worker computes on at once. Text batches hold "input_ids", "token_type_ids", "attention_mask" [B,
/// L] (int64), image batches "images" [B, C, H, W]; what is asked is in "labels", or as a model's loss says.
struct Batch {
  std::map<std::string, at::Tensor> fields;
  std::vector<int64_t> ids;  ///< stable numbers of the examples in their data set
  int64_t real_tokens = 0;   ///< without padding

  int64_t size() const { return static_cast<int64_t>(ids.size()); }
  const at::Tensor& at(const std::string& name) const { return fields.at(name); }
  Batch to(c10::Device device) const;  ///< the same one where it is there already
  /// The same with what dropout on a GPU is drawn from, int64: "noise_key" [1] is `key`, "noise_examples" [B]
  /// a hash of each example's number.
  Batch with_noise(uint64_t key) const;
};

/// A loss as a sum and what it is a sum over: workers differ in count, so a mean alone could not be averaged.
struct Loss {
  at::Tensor sum;  ///< scalar, differentiable
  int64_t count = 0;
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Rows of an embedding table that a batch reads: the only rows whose gradient can differ from zero.
struct RowUse {
  at::Tensor table;  ///< the parameter, [rows, width]
  at::Tensor rows;   ///< int64 row numbers, repeats allowed
};

}  // namespace syncopate::tensor
