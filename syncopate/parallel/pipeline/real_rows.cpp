#include "syncopate/parallel/pipeline/real_rows.h"

#include <ATen/ATen.h>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"

namespace syncopate::parallel {
namespace {

int64_t channel_dimension(const at::Tensor& hidden) {
  check(hidden.dim() >= 2 && hidden.dim() <= 4, "a hidden state is [B, C], [B, L, C] or [B, C, H, W]");
  return hidden.dim() == 4 ? 1 : hidden.dim() - 1;
}

at::Tensor on_cpu(const at::Tensor& field) { return field.to(at::kCPU).contiguous(); }

std::string_view bytes_of_field(const at::Tensor& contiguous) {
  return {static_cast<const char*>(contiguous.data_ptr()), contiguous.nbytes()};
}

/// The stretches of ones of a mask [B, L], as rows of [B * L].
std::vector<RealRows::Example> stretches(const at::Tensor& mask) {
  const at::Tensor real = on_cpu(mask.to(at::kLong));
  check(real.dim() == 2, "a mask is [B, L]");
  std::vector<RealRows::Example> examples(static_cast<size_t>(real.size(0)));
  const int64_t* token = real.data_ptr<int64_t>();
  int64_t row = 0;
  for (RealRows::Example& example : examples) {
    bool within = false;
    for (int64_t i = 0; i < real.size(1); ++i, ++row, ++token) {
      if (*token != 0) {
        if (!within) example.runs.push_back({row, 0});
        ++example.runs.back().rows;
        ++example.rows;
      }
      within = *token != 0;
    }
  }
  return examples;
}

std::vector<RealRows::Example> whole_examples(int64_t examples, int64_t rows) {
  std::vector<RealRows::Example> found(static_cast<size_t>(examples));
  for (int64_t i = 0; i < examples; ++i) found[static_cast<size_t>(i)] = {{{i * rows, rows}}, rows};
  return found;
}

const at::Tensor* field_of(const tensor::Batch& batch, const std::string& name) {
  const auto found = batch.fields.find(name);
  return found == batch.fields.end() ? nullptr : &found->second;
}

}  // namespace

RealRows real_rows(const at::Tensor& like, const tensor::Batch& batch) {
  const int64_t examples = like.size(0);
  check(examples == batch.size(), "a hidden state has as many examples as its batch");
  RealRows found;
  found.channels = like.size(channel_dimension(like));
  found.all_rows = found.channels == 0 ? 0 : like.numel() / found.channels;
  const at::Tensor* mask = like.dim() == 3 ? field_of(batch, "attention_mask") : nullptr;
  check(mask == nullptr || mask->numel() == found.all_rows, "a mask has a token for each row");
  const int64_t each = examples == 0 ? 0 : found.all_rows / examples;
  found.examples = mask != nullptr ? stretches(*mask) : whole_examples(examples, each);
  for (const RealRows::Example& example : found.examples) found.rows += example.rows;
  return found;
}

at::Tensor as_matrix(const at::Tensor& hidden) {
  check(hidden.scalar_type() == at::kFloat && hidden.is_cpu(), "activations are coded in fp32 on the CPU");
  const int64_t channels = hidden.size(channel_dimension(hidden));
  const at::Tensor rows = hidden.dim() == 4 ? hidden.permute({0, 2, 3, 1}) : hidden;
  return rows.contiguous().view({channels == 0 ? 0 : hidden.numel() / channels, channels});
}

at::Tensor from_matrix(const at::Tensor& matrix, const at::Tensor& like) {
  if (like.dim() != 4) return matrix.view(like.sizes());
  const at::Tensor last = matrix.view({like.size(0), like.size(2), like.size(3), like.size(1)});
  return last.permute({0, 3, 1, 2}).contiguous(like.suggest_memory_format());
}

std::vector<uint64_t> contents(const tensor::Batch& batch) {
  std::vector<uint64_t> hashes(static_cast<size_t>(batch.size()), 0);
  const at::Tensor* words = field_of(batch, "input_ids");
  const at::Tensor* field = words != nullptr ? words : field_of(batch, "images");
  if (field == nullptr || hashes.empty()) return hashes;
  const at::Tensor values = on_cpu(*field);
  const std::string_view bytes = bytes_of_field(values);
  const at::Tensor* mask = words != nullptr ? field_of(batch, "attention_mask") : nullptr;
  const bool masked = mask != nullptr && mask->numel() == values.numel();
  const auto parts = masked ? stretches(*mask) : whole_examples(batch.size(), values.numel() / batch.size());
  const auto each = static_cast<size_t>(values.element_size());
  for (size_t i = 0; i < hashes.size(); ++i) {
    for (const RealRows::Run& run : parts[i].runs) {
      const auto begin = static_cast<size_t>(run.first) * each, size = static_cast<size_t>(run.rows) * each;
      hashes[i] = checksum(bytes.substr(begin, size), hashes[i]);
    }
  }
  if (const at::Tensor* views =
          field_of(batch, "views")) {  // of images of bytes: another crop is another content
    const at::Tensor shown = on_cpu(*views);
    const std::string_view all = bytes_of_field(shown);
    const size_t size = all.size() / hashes.size();
    for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = checksum(all.substr(i * size, size), hashes[i]);
  }
  return hashes;
}

}  // namespace syncopate::parallel
