#include "syncopate/data/causal_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"

namespace syncopate::data {

namespace {

constexpr int64_t kIgnored = -100;  // what transformers and our losses leave out

}  // namespace

MakeAppend CausalDataset::appender(const text::ByteBpe& tokenizer) {
  return [&tokenizer]() -> AppendDocument {
    return [&tokenizer, memory = text::ByteBpe::Memory()](std::string_view document,
                                                          std::vector<int32_t>& into) mutable {
      tokenizer.encode(document, memory, into);
      if (tokenizer.end_of_text()) into.push_back(*tokenizer.end_of_text());
    };
  };
}

CausalDataset::CausalDataset(std::span<const std::string> documents, const text::ByteBpe& tokenizer,
                             int64_t max_length)
    : CausalDataset(std::make_shared<MemoryTokens>(token_stream(documents, appender(tokenizer))), tokenizer,
                    max_length) {}

CausalDataset::CausalDataset(std::shared_ptr<const Tokens> tokens, const text::ByteBpe& tokenizer,
                             int64_t max_length)
    : tokens_(std::move(tokens)),
      size_(tokens_->size()),
      max_length_(max_length),
      pad_(tokenizer.end_of_text().value_or(0)) {
  if (max_length < 2) throw ConfigError("max_length must be 2 or more, got {}", max_length);
  if (size_ % max_length == 1) --size_;  // one piece alone has nothing to predict
  blocks_ = (size_ + max_length - 1) / max_length;
}

tensor::Batch CausalDataset::collate(std::span<const int64_t> ids, uint64_t) const {
  tensor::Batch batch;
  const int64_t longest = start_texts(
      ids, [this](int64_t id) { return block_size(size_, max_length_, id); }, batch);
  const auto rows = static_cast<int64_t>(ids.size());
  const auto options = at::TensorOptions().dtype(at::kLong);
  at::Tensor input_ids = at::empty({rows, longest}, options);
  at::Tensor mask = at::empty({rows, longest}, options);
  at::Tensor labels = at::empty({rows, longest}, options);
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<int32_t> block = block_of(*tokens_, size_, max_length_, ids[static_cast<size_t>(row)]);
    const auto padding = longest - static_cast<int64_t>(block.size());
    const auto fill = [&](at::Tensor& field, int64_t pad) {
      int64_t* end = std::copy(block.begin(), block.end(), field.data_ptr<int64_t>() + row * longest);
      std::fill_n(end, padding, pad);
    };
    fill(input_ids, pad_);
    fill(labels, kIgnored);
    int64_t* mask_row = mask.data_ptr<int64_t>() + row * longest;
    std::fill_n(std::fill_n(mask_row, block.size(), int64_t{1}), padding, int64_t{0});
  }
  batch.fields = {{"input_ids", input_ids}, {"attention_mask", mask}, {"labels", labels}};
  return batch;
}

uint64_t CausalDataset::fingerprint() const {
  return checksum_of(std::vector<int64_t>{max_length_, blocks_}, tokens_->fingerprint(size_));
}

}  // namespace syncopate::data
