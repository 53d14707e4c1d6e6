#include "syncopate/text/words.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <string>
#include <vector>

#include "syncopate/corpora/text_task.h"

namespace syncopate::text {
namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text, const TextRules& rules) {
  Words words;
  for_each_word(text, rules, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Words uncased(std::string_view text) { return words_of(text, rules_for(true)); }
Words cased(std::string_view text) { return words_of(text, rules_for(false)); }

TEST(Words, SplitsAtSpaceAndPunctuation) {
  EXPECT_EQ(uncased("Hello,  World!\tdon't\r\n"), (Words{"hello", ",", "world", "!", "don", "'", "t"}));
  EXPECT_EQ(uncased("a^b`c$d+e"), (Words{"a", "^", "b", "`", "c", "$", "d", "+", "e"}));
  EXPECT_EQ(uncased("“quoted” —…"), (Words{"“", "quoted", "”", "—", "…"}));
  EXPECT_EQ(uncased("½ ©™ €5"), (Words{"½", "©™", "€5"})) << "symbols beyond ASCII are letters";
  EXPECT_EQ(uncased(""), Words{});
  EXPECT_EQ(uncased(" \n\t "), Words{});
}

TEST(Words, SplitsAtEveryKindOfWhiteSpace) {
  EXPECT_EQ(uncased("non\u00A0breaking\u3000wide\u2028line\u2003em"),
            (Words{"non", "breaking", "wide", "line", "em"}));
  EXPECT_EQ(uncased("zero\u200Bwidth"), Words{"zerowidth"}) << "a format character, not a space";
}

TEST(Words, DropsControlCharactersWithoutSplitting) {
  EXPECT_EQ(uncased(std::string_view("nu\0ll", 5)), Words{"null"});
  EXPECT_EQ(uncased("be\x07ll ver\vti\fcal nel\u0085x re\uFFFDplaced \uE000"),
            (Words{"bell", "vertical", "nelx", "replaced"}));
  EXPECT_EQ(uncased("ta\tb"), (Words{"ta", "b"})) << "the foil: a tab does split";
}

TEST(Words, LowerCaseAndAccents) {
  EXPECT_EQ(uncased("NAÏVE Café ÅNGSTRÖM İstanbul"), (Words{"naive", "cafe", "angstrom", "istanbul"}));
  EXPECT_EQ(cased("NAÏVE Café"), (Words{"NAÏVE", "Café"}));
  EXPECT_EQ(uncased("e\u0301a\u0323\u0302"), Words{"ea"});
  EXPECT_EQ(cased("e\u0301"), Words{"e\u0301"});
  EXPECT_EQ(uncased("Ø Ł ß Σ"), (Words{"ø", "ł", "ß", "σ"})) << "no decomposition, so they stay letters";
  EXPECT_EQ(words_of("É", {.lower_case = true, .strip_accents = false}), Words{"é"});
  EXPECT_EQ(words_of("É", {.lower_case = false, .strip_accents = true}), Words{"E"});
  EXPECT_EQ(words_of("İ", {.lower_case = true, .strip_accents = false}), Words{"i\u0307"});
}

TEST(Words, DecomposesAndReordersCharacters) {
  EXPECT_EQ(uncased("what\u037Enow"), (Words{"what", ";", "now"}))
      << "the Greek question mark is a semicolon";
  EXPECT_EQ(uncased("한"), Words{"\u1112\u1161\u11AB"});
  EXPECT_EQ(cased("한"), Words{"한"});
  // U+302F (class 224) sorts behind U+1D165 (class 216); neither is a non-spacing mark, so both stay.
  EXPECT_EQ(uncased("\u302F\U0001D165"), Words{"\U0001D165\u302F"});
  EXPECT_EQ(cased("\u302F\U0001D165"), Words{"\u302F\U0001D165"});
}

TEST(Words, IdeographsAreSeparateWords) {
  EXPECT_EQ(uncased("中文abcかな한"), (Words{"中", "文", "abcかな\u1112\u1161\u11AB"}));
  EXPECT_EQ(words_of("中文", {.split_cjk = false}), Words{"中文"});
  EXPECT_EQ(uncased("𠀀𠮷"), (Words{"𠀀", "𠮷"}));
}

TEST(Words, DropsInvalidUtf8) {
  EXPECT_EQ(uncased("a\xFF"
                    "b\xC3"),
            Words{"ab"});
  EXPECT_EQ(uncased("\xED\xA0\x80x\xC0\xAFy\xF8\x88\x80\x80\x80z"), Words{"xyz"})
      << "surrogate, overlong, too long";
}

/// A number that changes when any code point is treated otherwise. Made with Hugging Face's tokenizers
/// 0.22.2: BertNormalizer and BertPreTokenizer over "Q<character>q" for each.
uint64_t fingerprint(const TextRules& rules) {
  std::string all;
  for (int32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    utf8proc_uint8_t bytes[16] = {};
    const auto count = static_cast<size_t>(utf8proc_encode_char(c, bytes));
    std::string text(1, 'Q');
    text.append(reinterpret_cast<char*>(bytes), count).append(1, 'q');
    bool first = true;
    for (const std::string& word : words_of(text, rules)) {
      if (!first) all += '\n';
      all += word;
      first = false;
    }
    all += '\0';
  }
  return corpora::stable_hash(all);
}

TEST(Words, EveryCodePointMatchesTheStoredFingerprint) {
  EXPECT_EQ(fingerprint(rules_for(true)), 0xd4269903b3cc293bULL);
  EXPECT_EQ(fingerprint(rules_for(false)), 0x708a182b0b1462e3ULL);
  EXPECT_NE(fingerprint({.lower_case = true, .strip_accents = true, .split_cjk = false}),
            0xd4269903b3cc293bULL);
}

}  // namespace
}  // namespace syncopate::text
