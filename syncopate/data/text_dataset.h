#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "syncopate/data/dataset.h"
#include "syncopate/data/text_examples.h"

namespace syncopate::data {

/// Classification examples as word numbers. They are tokenized before, so a batch is a copy.
class TextDataset : public Dataset {
 public:
  /// `pad`: the number of the word that fills a batch's shorter texts.
  TextDataset(std::shared_ptr<const TextExamples> examples, int32_t pad);

  int64_t size() const override { return examples_->size(); }

  /// "input_ids", "token_type_ids", "attention_mask" [B, L], L the longest of the batch (0 rows and columns
  /// without examples), and "labels" [B]; all int64.
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const override;
  uint64_t fingerprint() const override { return examples_->fingerprint(); }

  int64_t length(int64_t id) const override { return at(id).length; }
  int64_t tokens() const { return examples_->tokens(); }  ///< of all examples

 private:
  TextExamples::Example at(int64_t id) const;

  std::shared_ptr<const TextExamples> examples_;
  int32_t pad_;
};

}  // namespace syncopate::data
