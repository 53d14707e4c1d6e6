#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace syncopate::text {

/// The word that ends a document.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

/// What a byte-level BPE is made of, spelled as in its files: one character of GPT-2's alphabet per byte.
struct BpeTable {
  std::vector<std::string> words;                           ///< by number
  std::vector<std::pair<std::string, std::string>> merges;  ///< the earlier joins first
};

/// Where a table came from, for errors.
struct BpeOrigin {
  std::string words = "the vocabulary";
  std::string merges = "the merges";
  int64_t first_line = 1;  ///< of the merges
};

/// The character (as UTF-8) that stands for a byte in the files of a byte-level BPE, the bytes in the order
/// GPT-2 numbers them, and the bytes that a word stands for.
const std::string& bpe_character(uint8_t byte);
const std::vector<uint8_t>& bpe_byte_order();
std::string bpe_bytes(std::string_view word);

/// GPT-2's tokenizer: words of bytes joined pair by pair, the earlier merge first. Every text can be written,
/// so there is no unknown word. Immutable: any number of threads may encode at once.
class ByteBpe {
 public:
  /// Throws DataError, which names `origin`, unless the words are distinct and hold all 256 bytes and what
  /// every merge joins and makes.
  explicit ByteBpe(BpeTable table, const BpeOrigin& origin = {});

  /// `path`: a folder with vocab.json and merges.txt or, without them, a tokenizer.json; or one of these
  /// files, of which a vocab.json stands beside its merges.txt. Throws DataError with file and line.
  static ByteBpe load(const std::filesystem::path& path);

  /// Writes vocab.json, merges.txt and tokenizer_config.json, such that load(folder) gives the same.
  void save(const std::filesystem::path& folder) const;

  /// Words met before and what they became, for one tokenizer and one thread; kept over many texts it makes
  /// encoding several times faster.
  class Memory {
   private:
    friend class ByteBpe;
    struct Hash {
      using is_transparent = void;
      size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
    };
    std::unordered_map<std::string, std::pair<uint32_t, uint32_t>, Hash, std::equal_to<>> places_;
    std::vector<int32_t> ids_;
  };

  /// The numbers of the text's pieces; <|endoftext|> written in it is that word. Any bytes are a text.
  std::vector<int32_t> encode(std::string_view text) const;
  void encode(std::string_view text, Memory& memory, std::vector<int32_t>& into) const;

  /// The bytes that `ids` stand for. Throws DataError for a number outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;

  int64_t size() const { return static_cast<int64_t>(table_.words.size()); }
  const std::string& token(int64_t id) const;  ///< as in vocab.json; throws DataError as decode does
  std::optional<int32_t> end_of_text() const { return end_of_text_; }
  const BpeTable& table() const { return table_; }

 private:
  struct Merge {
    int32_t rank;
    int32_t joined;
  };
  void encode_part(std::string_view text, Memory& memory, std::vector<int32_t>& into) const;
  void append_word(std::string_view word, std::vector<int32_t>& into) const;
  const Merge* merge_of(int32_t left, int32_t right) const;

  BpeTable table_;
  std::vector<std::string> bytes_;  ///< what each word stands for
  int32_t byte_ids_[256] = {};
  std::unordered_map<uint64_t, Merge> merges_;
  std::optional<int32_t> end_of_text_;
};

}  // namespace syncopate::text
