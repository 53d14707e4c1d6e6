#include "syncopate/text/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "syncopate/text/wordpiece.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::text {
namespace {

using Words = std::vector<std::string>;

TEST(Vocabulary, SpecialTokensThenCharactersThenTheMostFrequentPairs) {
  // Pairs: a##b 3 (abc, abc, ab), ##b##c 2, x##y 2. After `ab`, the pair ab##c counts 2, as x##y does.
  const Words words =
      train_vocabulary({"abc ab", "ABC xy xy"}, {.size = 100, .lower_case = true, .min_count = 1});
  EXPECT_EQ(words, (Words{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "##b", "##c", "##y", "a", "x", "ab",
                          "xy", "abc"}));
  EXPECT_NE(train_vocabulary({"abc ab", "ABC xy xy"}, {.size = 100, .lower_case = false, .min_count = 1}),
            words);
}

TEST(Vocabulary, StopsAtItsSizeOrAtRarePairs) {
  const std::vector<std::string_view> texts{"banana bandana banana ban", "bandana canal"};
  EXPECT_EQ(train_vocabulary(texts, {.size = 14, .min_count = 1}).size(), 14U);
  const Words often = train_vocabulary(texts, {.size = 1000, .min_count = 2});
  const Words once = train_vocabulary(texts, {.size = 1000, .min_count = 1});
  EXPECT_LT(often.size(), once.size());
  EXPECT_TRUE(std::count(once.begin(), once.end(), "canal"));
  EXPECT_FALSE(std::count(often.begin(), often.end(), "canal"));
  EXPECT_TRUE(std::count(often.begin(), often.end(), "bandana"));
  EXPECT_EQ(train_vocabulary({"aab"}, {.size = 6, .min_count = 1}).size(), 6U)
      << "the most frequent characters";
}

TEST(Vocabulary, RepeatedCharactersMergeWithoutOverlap) {
  const Words words = train_vocabulary({"aaaaa aaaaa"}, {.size = 100, .min_count = 1});
  EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), words.size());
  EXPECT_TRUE(std::count(words.begin(), words.end(), "aaaaa"));
}

/// The same count of pairs made the slow way: after each join everything is counted anew.
Words train_slowly(const std::vector<std::pair<std::string, int>>& counted, size_t size);

TEST(Vocabulary, IncrementalCountsMatchRecounting) {
  Rng rng(11);
  std::vector<std::pair<std::string, int>> counted;
  std::string text;
  for (int w = 0; w < 60; ++w) {
    std::string word;
    for (uint64_t i = 1 + rng.below(9); i > 0; --i) word += static_cast<char>('a' + rng.below(3));
    const int count = 1 + static_cast<int>(rng.below(5));
    for (int c = 0; c < count; ++c) text += word + " ";
    counted.emplace_back(word, count);
  }
  const Words fast = train_vocabulary({text}, {.size = 120, .min_count = 1});
  EXPECT_EQ(fast, train_slowly(counted, 120));
  EXPECT_NE(fast, train_slowly({counted.begin(), counted.end() - 30}, 120));
}

TEST(Vocabulary, RebuildsItsTextAndIsDeterministic) {
  const std::vector<std::string_view> texts{"The quick brown fox jumps over the lazy dog; naïve café, 中文!"};
  const Words words = train_vocabulary(texts, {.size = 60, .min_count = 1});
  EXPECT_EQ(words, train_vocabulary(texts, {.size = 60, .min_count = 1}));
  const WordPiece tokenizer(words, rules_for(true));
  const auto ids = tokenizer.encode(texts[0]);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer.unk()), 0);
  std::string joined;
  for (const int32_t id : ids)
    joined += tokenizer.token(id).substr(tokenizer.token(id).starts_with("##") ? 2 : 0);
  EXPECT_EQ(joined, "thequickbrownfoxjumpsoverthelazydog;naivecafe,中文!");
}

TEST(Vocabulary, RejectsInvalidInput) {
  EXPECT_THROW(train_vocabulary({"a"}, {.size = 5}), ConfigError);
  EXPECT_THROW(train_vocabulary({}, {}), DataError);
  EXPECT_THROW(train_vocabulary({" \n", ""}, {}), DataError);
}

TEST(Vocabulary, SavesAndLoads) {
  const syncopate::test::TempDir folder;
  const Words words = train_vocabulary({"ab ab é"}, {.size = 20, .min_count = 1});
  save_vocabulary(folder / "vocab.txt", words);
  EXPECT_EQ(load_vocabulary(folder / "vocab.txt"), words);
  EXPECT_THROW(save_vocabulary(folder / "no" / "vocab.txt", words), DataError);
  EXPECT_THROW(load_vocabulary(folder / "none.txt"), DataError);
}

Words train_slowly(const std::vector<std::pair<std::string, int>>& counted, size_t size) {
  std::vector<std::pair<std::vector<int>, int>> words;
  std::set<std::string> letters;
  const auto piece = [](const std::string& word, size_t i) {
    return (i == 0 ? "" : "##") + word.substr(i, 1);
  };
  for (const auto& [word, count] : counted) {
    for (size_t i = 0; i < word.size(); ++i) letters.insert(piece(word, i));
  }
  Words vocabulary = test::vocabulary_of({letters.begin(), letters.end()});
  const auto number = [&](const std::string& text) {
    const auto found = std::find(vocabulary.begin(), vocabulary.end(), text);
    if (found == vocabulary.end()) vocabulary.push_back(text);
    return static_cast<int>(std::find(vocabulary.begin(), vocabulary.end(), text) - vocabulary.begin());
  };
  for (const auto& [word, count] : counted) {
    std::vector<int> pieces;
    for (size_t i = 0; i < word.size(); ++i) pieces.push_back(number(piece(word, i)));
    words.emplace_back(pieces, count);
  }
  while (vocabulary.size() < size) {
    std::map<std::pair<int, int>, int> pairs;
    for (const auto& [pieces, count] : words) {
      for (size_t i = 0; i + 1 < pieces.size(); ++i) pairs[{pieces[i], pieces[i + 1]}] += count;
    }
    if (pairs.empty()) break;
    const auto best = *std::max_element(pairs.begin(), pairs.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto [left, right] = best.first;
    const int joined =
        number(vocabulary[static_cast<size_t>(left)] + vocabulary[static_cast<size_t>(right)].substr(2));
    for (auto& [pieces, count] : words) {
      std::vector<int> fresh;
      for (size_t i = 0; i < pieces.size(); ++i) {
        const bool here = i + 1 < pieces.size() && pieces[i] == left && pieces[i + 1] == right;
        fresh.push_back(here ? joined : pieces[i]);
        i += here ? 1 : 0;
      }
      pieces = fresh;
    }
  }
  return vocabulary;
}

}  // namespace
}  // namespace syncopate::text
