#include "syncopate/corpora/validation.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {
namespace {

/// Else the order would be that of the test splits which are held out by their hash.
constexpr uint64_t kSalt = 0x7a11da7e;
constexpr size_t kBlock = 4096;  // bytes

/// A text in blocks of at most kBlock bytes, cut behind the last line end or space, else between characters.
std::vector<std::string> blocks_of(std::string_view text) {
  std::vector<std::string> blocks;
  while (!text.empty()) {
    size_t end = std::min(kBlock, text.size());
    if (end < text.size()) {
      size_t cut = text.rfind('\n', end - 1);
      if (cut == std::string_view::npos) cut = text.rfind(' ', end - 1);
      if (cut != std::string_view::npos) {
        end = cut + 1;
      } else {
        while (end > 1 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
      }
    }
    blocks.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return blocks;
}

std::vector<char> flags_of(const std::vector<std::string>& texts, double share) {
  std::vector<uint64_t> keys;
  for (const std::string& text : texts) keys.push_back(validation_key(text));
  return held_out_for_validation(keys, share);
}

}  // namespace

uint64_t validation_key(std::string_view content, std::string_view second) {
  return mix_key(kSalt, stable_hash(content), stable_hash(second));
}

std::vector<char> held_out_for_validation(const std::vector<uint64_t>& keys, double share) {
  std::vector<uint64_t> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  const auto wanted = static_cast<size_t>(std::llround(share * static_cast<double>(keys.size())));
  const size_t count = std::max<size_t>(1, wanted);
  if (count >= keys.size() || sorted[count - 1] == sorted.back()) {
    throw DataError(
        "{} training examples are too few, or too alike, to hold out {} of them for validation; give a file "
        "for validation, or more data",
        keys.size(), share);
  }
  std::vector<char> flags;
  flags.reserve(keys.size());
  for (const uint64_t key : keys) flags.push_back(key <= sorted[count - 1] ? 1 : 0);
  return flags;
}

HeldOutDocuments hold_out_documents(std::vector<std::string>& documents, double share) {
  if (documents.size() >= kFewDocuments) {
    const size_t total = documents.size();
    std::vector<std::string> taken = take_out(documents, flags_of(documents, share));
    const size_t count = taken.size();
    return {.documents = std::move(taken), .unit = "documents", .taken = count, .total = total};
  }
  std::vector<std::string> blocks;
  std::vector<size_t> document_of;
  for (size_t i = 0; i < documents.size(); ++i) {
    for (std::string& block : blocks_of(documents[i])) {
      blocks.push_back(std::move(block));
      document_of.push_back(i);
    }
  }
  const std::vector<char> held = flags_of(blocks, share);
  std::vector<std::string> taken, left;
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::vector<std::string>& into = held[i] != 0 ? taken : left;
    const bool goes_on = i > 0 && document_of[i] == document_of[i - 1] && held[i] == held[i - 1];
    if (goes_on) {
      into.back() += blocks[i];
    } else {
      into.push_back(std::move(blocks[i]));
    }
  }
  documents = std::move(left);
  const auto count = static_cast<size_t>(std::count(held.begin(), held.end(), 1));
  return {.documents = std::move(taken), .unit = "blocks of text", .taken = count, .total = held.size()};
}

}  // namespace syncopate::corpora
