#include "syncopate/nn/layers/batch_tokens.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "syncopate/base/error.h"
#include "syncopate/nn/layers/cross_entropy.h"

namespace syncopate::nn {

void check_tokens(const at::Tensor& ids_BL, int64_t max_positions, int64_t vocab_size, const char* advice) {
  if (ids_BL.size(1) > max_positions) {
    throw DataError("a batch has texts of {} tokens but the model has positions for {}; lower max_length",
                    ids_BL.size(1), max_positions);
  }
  if (!ids_BL.is_cpu() || ids_BL.numel() == 0) return;
  const int64_t least = ids_BL.min().item<int64_t>(), most = ids_BL.max().item<int64_t>();
  if (least < 0 || most >= vocab_size) {
    throw DataError("token number {} is outside the model's vocabulary of {}; {}", least < 0 ? least : most,
                    vocab_size, advice);
  }
}

at::Tensor additive_mask(const tensor::Batch& batch, const at::TensorOptions& options) {
  const auto found = batch.fields.find("attention_mask");
  if (found == batch.fields.end()) return {};
  const at::Tensor& mask_BL = found->second;
  if (batch.real_tokens == mask_BL.numel()) return {};
  if (mask_BL.is_cpu() && mask_BL.ne(0).all().item<bool>()) return {};
  // fp32's lowest would be infinite in fewer bits, and a row that is all padding no number.
  double lowest = std::numeric_limits<float>::lowest();
  if (options.dtype() == at::kHalf) lowest = std::numeric_limits<at::Half>::lowest();
  if (options.dtype() == at::kBFloat16) lowest = std::numeric_limits<at::BFloat16>::lowest();
  return mask_BL.eq(0).to(options).mul(lowest).contiguous();
}

int64_t common_length(int64_t length) {
  int64_t unit = 16;
  while (8 * 2 * unit < length) unit *= 2;
  return (length + unit - 1) / unit * unit;
}

tensor::Batch padded(tensor::Batch batch, int64_t length, int64_t pad_token) {
  const at::Tensor ids_BL = batch.at("input_ids");
  const int64_t B = ids_BL.size(0), L = ids_BL.size(1);
  if (length > L) {
    if (batch.fields.find("attention_mask") == batch.fields.end())
      batch.fields["attention_mask"] = at::ones_like(ids_BL);
    for (auto& [name, field] : batch.fields) {
      if (field.dim() != 2 || field.size(1) != L) continue;
      const int64_t fill = name == "input_ids" ? pad_token : name == "labels" ? kNoLabel : 0;
      field = at::constant_pad_nd(field, {0, length - L}, fill);
    }
  }
  const auto masked = batch.fields.find("masked");
  if (masked == batch.fields.end()) return batch;
  at::Tensor& labels = batch.fields.at("labels");
  constexpr int64_t kUnit = 64;
  const int64_t count = masked->second.size(0), more = (count + kUnit - 1) / kUnit * kUnit - count;
  const at::Tensor row = masked->second.div(std::max<int64_t>(L, 1), "floor");
  if (B > 0)
    masked->second = at::constant_pad_nd(masked->second + row * (std::max(length, L) - L), {0, more}, 0);
  labels = at::constant_pad_nd(labels, {0, B > 0 ? more : 0}, kNoLabel);
  return batch;
}

at::Tensor empty_states(const tensor::Batch& batch, int layer, int depth, int64_t width) {
  check(0 < layer && layer < depth - 1, "what enters this layer is not the states of all positions");
  const at::Tensor& ids_BL = batch.at("input_ids");
  return at::empty({ids_BL.size(0), ids_BL.size(1), width}, ids_BL.options().dtype(at::kFloat));
}

}  // namespace syncopate::nn
