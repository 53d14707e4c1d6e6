#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "syncopate/data/dataset.h"
#include "syncopate/data/token_stream.h"
#include "syncopate/data/tokens.h"
#include "syncopate/text/bpe.h"

namespace syncopate::data {

/// Documents to predict the next piece of: joined, with <|endoftext|> after each (where the vocabulary has
/// it), and cut into blocks. Everything is tokenized at construction; neither the documents nor the tokenizer
/// need to live on.
class CausalDataset : public Dataset {
 public:
  /// The last block may be short, but has 2 pieces at least. Throws ConfigError when `max_length` is less
  /// than 2.
  CausalDataset(std::span<const std::string> documents, const text::ByteBpe& tokenizer, int64_t max_length);
  /// Of documents that are tokens already, by appender().
  CausalDataset(std::shared_ptr<const Tokens> tokens, const text::ByteBpe& tokenizer, int64_t max_length);

  /// How documents become one stream. The tokenizer must outlive it.
  static MakeAppend appender(const text::ByteBpe& tokenizer);

  int64_t size() const override { return blocks_; }

  /// "input_ids", "attention_mask" and "labels" [B, L], int64, L the longest of the batch. The labels are the
  /// words at the same places, -100 where the batch is padded: the model shifts them.
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const override;
  uint64_t fingerprint() const override;

  int64_t tokens() const { return size_; }  ///< of all blocks

 private:
  std::shared_ptr<const Tokens> tokens_;
  int64_t size_;  ///< of these: how many are in blocks
  int64_t max_length_;
  int64_t blocks_ = 0;
  int64_t pad_;
};

}  // namespace syncopate::data
