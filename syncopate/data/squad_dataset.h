#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/squad/squad.h"
#include "syncopate/data/dataset.h"
#include "syncopate/text/wordpiece.h"
#include "syncopate/text/words.h"

namespace syncopate::data {

struct WindowOptions {
  int64_t max_length = 384;   ///< pieces of a feature, the three special words included
  int64_t stride = 128;       ///< pieces of the context that a window shares with the one before it
  int64_t max_question = 64;  ///< questions are cut to so many pieces
};

/// Questions as features: [CLS] question [SEP] window of the context [SEP], as many windows as the context
/// needs. Everything is tokenized at construction, a context once; neither the task nor the tokenizer need to
/// live on. A feature is an example of this data set.
class SquadDataset : public Dataset {
 public:
  /// Every question's context is among `contexts`. Throws ConfigError when the options leave a window no room
  /// to move on.
  SquadDataset(std::span<const corpora::Question> questions, std::span<const std::string> contexts,
               const text::WordPiece& tokenizer, const WindowOptions& options);

  int64_t size() const override { return static_cast<int64_t>(features_.size()); }

  /// "input_ids", "token_type_ids", "attention_mask" [B, L], L the longest of the batch, and "starts", "ends"
  /// [B]: where the first answer begins and ends, both 0 ([CLS]) when it is not wholly in the window or there
  /// is none; all int64.
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const override;
  uint64_t fingerprint() const override;

  int64_t questions() const { return static_cast<int64_t>(questions_.size()); }
  int64_t question_of(int64_t feature) const { return at(feature).question; }
  /// The features of a question, one window after the other: begin..end-1.
  std::pair<int64_t, int64_t> features_of(int64_t question) const;

  int64_t length(int64_t feature) const override;
  /// The positions of a feature that hold its window: first and one behind the last.
  std::pair<int64_t, int64_t> window(int64_t feature) const;
  /// The bytes of the context that a position of the window stands for.
  text::ByteRange place(int64_t feature, int64_t position) const;
  std::string_view context_of(int64_t feature) const;

 private:
  struct AskedQuestion {
    int64_t context;
    int64_t first_feature;
    std::vector<int32_t> ids;  ///< cut
  };
  struct Context {
    std::string text;
    std::vector<text::Piece> pieces;
  };
  struct Feature {
    int64_t question;
    int64_t begin, count;  ///< the window, in pieces of the context
    int64_t start, end;    ///< positions of the answer
  };
  const Feature& at(int64_t feature) const;
  const Context& context(const Feature& feature) const;

  std::vector<AskedQuestion> questions_;
  std::vector<Context> contexts_;
  std::vector<Feature> features_;
  int64_t pad_, cls_, sep_;
};

}  // namespace syncopate::data
