#pragma once

#include <string_view>

namespace syncopate::text {

/// Cuts a text into the words that GPT-2's byte-level BPE joins within: the endings 's 't 're 've 'm 'll 'd;
/// letters, digits or other signs, each run with one blank before it; white space, of which the last
/// character before a word is left to it. Joined, the words are the text. Any bytes are a text: what is not
/// UTF-8 is a sign.
class BpeWords {
 public:
  /// `text` must outlive it.
  explicit BpeWords(std::string_view text) : text_(text) {}

  /// The next word; empty at the end.
  std::string_view next();

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace syncopate::text
