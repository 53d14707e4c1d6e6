#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syncopate/text/words.h"

namespace syncopate::text {

/// What a model reads: word numbers and which of the two texts each belongs to (0 or 1).
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;
};

/// A piece and the bytes of the text it stands for.
struct Piece {
  int32_t id = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Piece&) const = default;
};

/// BERT's tokenizer: words cut into the longest pieces the vocabulary holds, `##` before pieces inside a
/// word, a word that cannot be cut or is longer than 100 characters is [UNK]; [PAD] [UNK] [CLS] [SEP] [MASK]
/// written in a text are kept whole. Immutable, so any number of threads may encode at once.
class WordPiece {
 public:
  /// Throws DataError, which names `origin` and the line, unless `words` are distinct, not empty, valid UTF-8
  /// and contain the five special words.
  WordPiece(std::vector<std::string> words, TextRules rules, const std::string& origin = "the vocabulary");

  /// `path`: a vocab.txt or a tokenizer.json, or a folder that holds one; the first counts where both are
  /// there. What a tokenizer_config.json beside it says is heeded (`do_lower_case`, `strip_accents`,
  /// `tokenize_chinese_chars`); else a vocab.txt is lower case.
  static WordPiece load(const std::filesystem::path& path);

  WordPiece(WordPiece&&) = default;
  WordPiece& operator=(WordPiece&&) = default;
  WordPiece(const WordPiece&) = delete;  // the tables point into words_
  WordPiece& operator=(const WordPiece&) = delete;

  /// The numbers of the text's pieces, no special words added. Any bytes are a text.
  std::vector<int32_t> encode(std::string_view text) const;

  /// The same pieces with their places in `text`, several times slower. Places never go back, but pieces of
  /// one character (a syllable of Hangul) share its place.
  std::vector<Piece> encode_with_offsets(std::string_view text) const;

  /// [CLS] text [SEP], or [CLS] text [SEP] pair [SEP], cut to `max_length` in all (0: no limit) by taking
  /// from the end of the longer text first. A pair that is given but empty still has its [SEP]. Throws
  /// ConfigError when `max_length` has no room for the special words.
  Encoding encode(std::string_view text, std::optional<std::string_view> pair, int64_t max_length,
                  bool add_special = true) const;

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::string& token(int64_t id) const;  ///< throws DataError for a number outside the vocabulary
  const std::vector<std::string>& words() const { return words_; }

  int32_t pad() const { return pad_; }
  int32_t unk() const { return unk_; }
  int32_t cls() const { return cls_; }
  int32_t sep() const { return sep_; }
  int32_t mask() const { return mask_; }
  const TextRules& rules() const { return rules_; }
  bool lower_case() const { return rules_.lower_case; }

  /// Writes vocab.txt and tokenizer_config.json, such that load(folder) gives the same tokenizer.
  void save(const std::filesystem::path& folder) const;

 private:
  void append_pieces(std::string_view word, std::vector<int32_t>& ids) const;
  /// Calls `plain(begin, end)` for what lies between special words and `special(id, begin, end)` for those.
  template <typename Plain, typename Special>
  void for_each_stretch(std::string_view text, const Plain& plain, const Special& special) const;
  int32_t special(std::string_view word, const std::string& origin) const;

  std::vector<std::string> words_;
  TextRules rules_;
  std::unordered_map<std::string_view, int32_t>
      starts_;  ///< every word; the first piece of a word is among them
  std::unordered_map<std::string_view, int32_t> inner_;  ///< the words that begin with ##, without it
  size_t longest_start_ = 0;                             ///< bytes
  size_t longest_inner_ = 0;
  int32_t pad_ = 0, unk_ = 0, cls_ = 0, sep_ = 0, mask_ = 0;
};

}  // namespace syncopate::text
