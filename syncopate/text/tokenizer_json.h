#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "syncopate/text/bpe.h"
#include "syncopate/text/words.h"

// Hugging Face's one-file form of a tokenizer. What is read is read exactly: a part that is not BERT's
// WordPiece or GPT-2's byte-level BPE is a DataError that names it. `truncation` and `padding` are a caller's
// business and not heeded; nor is the decoder.
namespace syncopate::text {

/// The file's usual name.
inline constexpr const char* kTokenizerJson = "tokenizer.json";

/// A WordPiece vocabulary and how texts become words.
struct WordPieceTable {
  std::vector<std::string> words;
  TextRules rules;
};

WordPieceTable read_wordpiece_json(const std::filesystem::path& path);
BpeTable read_bpe_json(const std::filesystem::path& path);

/// The words of an object {"word": number}, in their order. Throws DataError, which names `where`, unless
/// they are numbered from 0 on, each once.
std::vector<std::string> words_by_number(const nlohmann::json& numbers, const std::string& where);

}  // namespace syncopate::text
