#include "syncopate/text/bpe_words.h"

#include <utf8proc.h>

#include <array>
#include <cstdint>

#include "syncopate/text/characters.h"

namespace syncopate::text {
namespace {

enum class Sort : uint8_t { kSign, kLetter, kDigit, kSpace };

/// As GPT-2's pattern sorts them: \s is the property White_Space.
Sort sort_of_character(int32_t c) {
  if (is_white_space(c)) return Sort::kSpace;
  return is_letter(c) ? Sort::kLetter : is_number(c) ? Sort::kDigit : Sort::kSign;
}

const std::array<Sort, 128>& ascii() {
  static const std::array<Sort, 128> kSorts = [] {
    std::array<Sort, 128> sorts{};
    for (int32_t c = 0; c < 128; ++c) sorts[static_cast<size_t>(c)] = sort_of_character(c);
    return sorts;
  }();
  return kSorts;
}

struct Character {
  Sort sort;
  size_t bytes;
};

/// The character at `at`, which is within the text.
Character character_at(std::string_view text, size_t at, const std::array<Sort, 128>& sorts) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  if (bytes[at] < 0x80) return {sorts[bytes[at]], 1};
  int32_t character = 0;
  const auto used = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &character);
  if (used <= 0) return {Sort::kSign, 1};
  return {sort_of_character(character), static_cast<size_t>(used)};
}

/// Bytes of the ending that begins at the apostrophe `at`; 0: none.
size_t ending_at(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at + 1, 2);
  if (rest == "re" || rest == "ve" || rest == "ll") return 3;
  if (!rest.empty() && std::string_view("stmd").find(rest[0]) != std::string_view::npos) return 2;
  return 0;
}

}  // namespace

std::string_view BpeWords::next() {
  const size_t start = at_;
  if (start == text_.size()) return {};
  const auto& sorts = ascii();
  if (text_[start] == '\'') {
    if (const size_t bytes = ending_at(text_, start); bytes > 0) {
      at_ += bytes;
      return text_.substr(start, bytes);
    }
  }
  Character current = character_at(text_, start, sorts);
  size_t end = start + current.bytes;
  if (text_[start] == ' ' && end < text_.size()) {
    const Character following = character_at(text_, end, sorts);
    if (following.sort != Sort::kSpace) {
      current = following;
      end += following.bytes;
    }
  }
  size_t last = start;  // where the run's last character begins
  while (end < text_.size()) {
    const Character following = character_at(text_, end, sorts);
    if (following.sort != current.sort) break;
    last = end;
    end += following.bytes;
  }
  if (current.sort == Sort::kSpace && end < text_.size() && last > start) end = last;
  at_ = end;
  return text_.substr(start, end - start);
}

}  // namespace syncopate::text
