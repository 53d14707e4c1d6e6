#include "syncopate/data/text_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"

namespace syncopate::data {

TextDataset::TextDataset(std::shared_ptr<const TextExamples> examples, int32_t pad)
    : examples_(std::move(examples)), pad_(pad) {}

TextExamples::Example TextDataset::at(int64_t id) const {
  check(id >= 0 && id < size(), "an example's number is within its data set");
  return examples_->at(id);
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
  std::vector<int32_t> words;
  for (int64_t row = 0; row < rows; ++row) {
    const TextExamples::Example example = at(ids[static_cast<size_t>(row)]);
    const int64_t real = example.length;
    int64_t* input_row = input_ids.data_ptr<int64_t>() + row * longest;
    int64_t* type_row = types.data_ptr<int64_t>() + row * longest;
    int64_t* mask_row = mask.data_ptr<int64_t>() + row * longest;
    words.resize(static_cast<size_t>(real));
    examples_->read(example, words);
    std::copy(words.begin(), words.end(), input_row);
    std::fill(input_row + real, input_row + longest, int64_t{pad_});
    std::fill(type_row, type_row + longest, int64_t{0});
    std::fill(type_row + real - example.seconds, type_row + real, int64_t{1});
    std::fill(mask_row, mask_row + real, int64_t{1});
    std::fill(mask_row + real, mask_row + longest, int64_t{0});
    labels.data_ptr<int64_t>()[row] = example.label;
  }
  batch.fields = {
      {"input_ids", input_ids}, {"token_type_ids", types}, {"attention_mask", mask}, {"labels", labels}};
  return batch;
}

}  // namespace syncopate::data
