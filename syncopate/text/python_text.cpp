#include "syncopate/text/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "syncopate/text/characters.h"

namespace syncopate::text {
namespace {

constexpr int32_t kCapitalSigma = 0x3A3;
constexpr int32_t kSmallSigma = 0x3C3;
constexpr int32_t kFinalSigma = 0x3C2;

bool is_cased(int32_t c) {
  const auto category = utf8proc_category(c);
  const bool other_cased = c == 0xAA || c == 0xBA || (c >= 0x2B0 && c <= 0x2B8) || c == 0x345 ||
                           (c >= 0x2160 && c <= 0x217F) || (c >= 0x24B6 && c <= 0x24E9);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT || other_cased;
}

/// Characters that do not end a word for the rule of the final sigma.
bool is_case_ignorable(int32_t c) {
  constexpr int32_t kInsideWords[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                      0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::find(std::begin(kInsideWords), std::end(kInsideWords), c) != std::end(kInsideWords);
  }
}

bool ends_a_word(const std::vector<int32_t>& text, size_t sigma) {
  size_t before = sigma;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = sigma + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

std::vector<int32_t> code_points_of(std::string_view text) {
  std::vector<int32_t> characters;
  characters.reserve(text.size());
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    int32_t character = 0;
    const auto used = utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &character);
    if (used > 0) characters.push_back(character);
    i += used > 0 ? static_cast<size_t>(used) : 1;
  }
  return characters;
}

std::vector<int32_t> python_lower(const std::vector<int32_t>& text) {
  std::vector<int32_t> lowered;
  lowered.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kCapitalDottedI) {
      lowered.insert(lowered.end(), {'i', kDotAbove});
    } else if (text[i] == kCapitalSigma) {
      lowered.push_back(ends_a_word(text, i) ? kFinalSigma : kSmallSigma);
    } else {
      lowered.push_back(utf8proc_tolower(text[i]));
    }
  }
  return lowered;
}

bool python_is_space(int32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

bool python_is_word(int32_t c) { return c == '_' || is_letter(c) || is_number(c); }

}  // namespace syncopate::text
