#include "syncopate/data/text_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"

namespace syncopate::data {

TextDataset::TextDataset(std::span<const corpora::TextExample> examples, const text::WordPiece& tokenizer,
                         int64_t max_length)
    : starts_{0}, pad_(tokenizer.pad()) {
  if (max_length < 3) throw ConfigError("max_length must be 3 or more, got {}", max_length);
  starts_.reserve(examples.size() + 1);
  for (const corpora::TextExample& example : examples) {
    const std::optional<std::string_view> pair =
        example.b.empty() ? std::nullopt : std::optional<std::string_view>(example.b);
    const text::Encoding encoding = tokenizer.encode(example.a, pair, max_length);
    words_.insert(words_.end(), encoding.ids.begin(), encoding.ids.end());
    starts_.push_back(static_cast<int64_t>(words_.size()));
    seconds_.push_back(static_cast<int32_t>(std::count(encoding.types.begin(), encoding.types.end(), 1)));
    labels_.push_back(static_cast<int32_t>(example.label));
  }
}

int64_t TextDataset::length(int64_t id) const {
  check(id >= 0 && id < size(), "an example's number is within its data set");
  return starts_[static_cast<size_t>(id) + 1] - starts_[static_cast<size_t>(id)];
}

tensor::Batch TextDataset::collate(std::span<const int64_t> ids, uint64_t) const {
  tensor::Batch batch;
  const int64_t longest = start_texts(
      ids, [this](int64_t id) { return length(id); }, batch);
  const auto rows = static_cast<int64_t>(ids.size());
  const auto options = at::TensorOptions().dtype(at::kLong);
  at::Tensor input_ids = at::empty({rows, longest}, options);
  at::Tensor types = at::empty({rows, longest}, options);
  at::Tensor mask = at::empty({rows, longest}, options);
  at::Tensor labels = at::empty({rows}, options);
  for (int64_t row = 0; row < rows; ++row) {
    const auto id = static_cast<size_t>(ids[static_cast<size_t>(row)]);
    const int64_t real = starts_[id + 1] - starts_[id];
    int64_t* input_row = input_ids.data_ptr<int64_t>() + row * longest;
    int64_t* type_row = types.data_ptr<int64_t>() + row * longest;
    int64_t* mask_row = mask.data_ptr<int64_t>() + row * longest;
    std::copy_n(words_.begin() + starts_[id], real, input_row);
    std::fill(input_row + real, input_row + longest, pad_);
    std::fill(type_row, type_row + longest, int64_t{0});
    std::fill(type_row + real - seconds_[id], type_row + real, int64_t{1});
    std::fill(mask_row, mask_row + real, int64_t{1});
    std::fill(mask_row + real, mask_row + longest, int64_t{0});
    labels.data_ptr<int64_t>()[row] = labels_[id];
  }
  batch.fields = {
      {"input_ids", input_ids}, {"token_type_ids", types}, {"attention_mask", mask}, {"labels", labels}};
  return batch;
}

uint64_t TextDataset::fingerprint() const {
  return checksum_of(labels_, checksum_of(seconds_, checksum_of(starts_, checksum_of(words_))));
}

}  // namespace syncopate::data
