#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "syncopate/data/dataset.h"
#include "syncopate/data/token_stream.h"
#include "syncopate/data/tokens.h"
#include "syncopate/text/wordpiece.h"

namespace syncopate::data {

struct MaskOptions {
  int64_t max_length = 128;  ///< of a block, [CLS] and [SEP] included
  double rate = 0.15;        ///< share of a block's words to predict
  bool whole_words = false;  ///< a word is chosen with all its pieces
  uint64_t seed = 0;
};

/// Documents to predict hidden words of, as BERT learns: joined, [SEP] between them, and cut into blocks
/// [CLS] pieces [SEP]. Of a block's pieces (special words apart) exactly max(1, round(rate * pieces)) are
/// chosen anew by every draw; 80 % of them become [MASK], 10 % any word, 10 % stay. With whole_words, words
/// are chosen until there are so many pieces, the last of them perhaps going beyond. Everything is tokenized
/// at construction; neither the documents nor the tokenizer need to live on.
class MaskedDataset : public Dataset {
 public:
  /// The last block may be short, but has 8 pieces at least unless it is the only one. Throws ConfigError for
  /// a rate out of range or a `max_length` under 3.
  MaskedDataset(std::span<const std::string> documents, const text::WordPiece& tokenizer,
                MaskOptions options);
  /// Of documents that are tokens already, by appender().
  MaskedDataset(std::shared_ptr<const Tokens> tokens, const text::WordPiece& tokenizer, MaskOptions options);

  /// How documents become one stream. The tokenizer must outlive it.
  static MakeAppend appender(const text::WordPiece& tokenizer);

  int64_t size() const override { return blocks_; }

  /// "input_ids", "token_type_ids" (zeros) and "attention_mask" [B, L], L the longest of the batch; "masked"
  /// [M], the chosen places as row * L + column, ascending; "labels" [M], the words that stood there; all
  /// int64.
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const override;
  uint64_t fingerprint() const override;

  /// Of all blocks, [CLS] and the last [SEP] of each apart.
  int64_t tokens() const { return size_; }

 private:
  struct Choice;
  std::vector<Choice> choose(std::span<const int32_t> pieces, int64_t id, uint64_t draw) const;

  MaskOptions options_;
  std::shared_ptr<const Tokens> tokens_;
  int64_t size_;  ///< of these: how many are in blocks
  int64_t blocks_ = 0;
  std::vector<char> special_;      ///< by word: never chosen
  std::vector<char> inner_;        ///< by word: continues the word before it
  std::vector<int32_t> ordinary_;  ///< the words that are not special
  int32_t pad_, cls_, sep_, mask_;
};

}  // namespace syncopate::data
