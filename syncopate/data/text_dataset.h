#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "syncopate/corpora/text_task.h"
#include "syncopate/data/dataset.h"
#include "syncopate/text/wordpiece.h"

namespace syncopate::data {

/// Classification examples as word numbers. Everything is tokenized at construction, so a batch is a copy;
/// neither the examples nor the tokenizer need to live on.
class TextDataset : public Dataset {
 public:
  /// `max_length` counts the special words. Throws ConfigError when it is less than 3, the special words of a
  /// pair.
  TextDataset(std::span<const corpora::TextExample> examples, const text::WordPiece& tokenizer,
              int64_t max_length);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }

  /// "input_ids", "token_type_ids", "attention_mask" [B, L], L the longest of the batch (0 rows and columns
  /// without examples), and "labels" [B]; all int64.
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const override;
  uint64_t fingerprint() const override;

  int64_t length(int64_t id) const override;
  int64_t tokens() const { return static_cast<int64_t>(words_.size()); }  ///< of all examples

 private:
  std::vector<int32_t> words_;    ///< one example after the other
  std::vector<int64_t> starts_;   ///< size() + 1 offsets into words_
  std::vector<int32_t> seconds_;  ///< how many of an example's words belong to its second text
  std::vector<int32_t> labels_;
  int64_t pad_;
};

}  // namespace syncopate::data
