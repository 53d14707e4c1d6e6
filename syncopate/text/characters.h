#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::text {

/// What BERT's clean-up and splitting rules make of a character.
enum class CharKind : uint8_t {
  kLetter,       ///< part of a word: everything the other kinds do not name, unassigned characters included
  kSpace,        ///< ends a word
  kPunctuation,  ///< a word by itself
  kMark,         ///< a non-spacing mark: dropped when accents are stripped, else a letter
  kDropped,      ///< controls, formats, private use, U+FFFD: removed before anything else
};

/// The kind of any code point. The categories are Unicode 8's, as in the tokenizer that BERT's published
/// vocabularies are used with; characters assigned later are letters there, and so they are here, whatever
/// version of Unicode the system's libraries know.
CharKind kind_of(int32_t character);

/// Ideographs that stand as words of their own. Kana and Hangul do not.
bool is_cjk(int32_t character);

/// Appends the canonical decomposition (NFD) of one character; the caller puts marks in canonical order.
void append_decomposed(int32_t character, std::vector<int32_t>& into);

/// Puts the marks of a decomposed text in canonical order.
void order_marks(std::vector<int32_t>& text);

/// U+0130, whose lower case is an i and a dot above.
inline constexpr int32_t kCapitalDottedI = 0x130, kDotAbove = 0x307;

/// Lower case, one character to one; kCapitalDottedI, whose lower case is two characters, is the caller's.
int32_t lower(int32_t character);

/// By the categories and properties of utf8proc's Unicode: L*, N* and White_Space.
bool is_letter(int32_t character);
bool is_number(int32_t character);
bool is_white_space(int32_t character);

}  // namespace syncopate::text
