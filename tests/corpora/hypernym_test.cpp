#include "syncopate/corpora/wordnet/hypernym.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "syncopate/corpora/wordnet/nouns.h"
#include "syncopate/corpora/wordnet/wordnet.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using test::sentence;

TEST(Nouns, ReadsWordsDefinitionsAndKinds) {
  const syncopate::test::TempDir folder;
  const std::string text =
      "  1 the licence\n"
      "00000001 05 n 02 canine 0 canid_x 1 001 ~ 00000002 n 0000 | a dog-like animal; \"canines bark\"  \n"
      "00000002 05 n 01 dog 0 003 @ 00000001 n 0000 @i 00000001 n 0000 @ 00009999 n 0000 | a member; common; "
      "\"x\"  \n";
  syncopate::test::write_text(folder / "data.noun", text);
  const std::vector<Noun> nouns = read_nouns(folder.path());
  ASSERT_EQ(nouns.size(), 2U);
  EXPECT_EQ(nouns[0].words, (std::vector<std::string>{"canine", "canid x"}));
  EXPECT_EQ(nouns[0].definition, "a dog-like animal");
  EXPECT_EQ(nouns[0].kinds, std::vector<int64_t>{1});
  EXPECT_EQ(nouns[1].kinds_of, std::vector<int64_t>{0}) << "neither an instance nor a pointer into nothing";
  EXPECT_EQ(nouns[1].definition, "a member; common");
  for (const char* bad : {"00000003 05 n 02 cat 0 000 | x", "00000003 05 v 01 cat 0 000 | x",
                          "00000003 05 n 01 cat 0 001 @ 00000001 n | x", "00000003 05 n 00 000 | x",
                          "00000003 05 n 01 cat 0 000 x", "00000003 05 n 01 cat 0 000 | ", "00000003"}) {
    syncopate::test::write_text(folder / "bad", text + bad + "\n");
    EXPECT_NE(sentence<DataError>([&] { read_nouns(folder / "bad"); }).find("bad:4: not a WordNet synset"),
              std::string::npos)
        << bad;
  }
  syncopate::test::write_text(folder / "twice", text + "00000001 05 n 01 cat 0 000 | x\n");
  EXPECT_NE(sentence<DataError>([&] {
              read_nouns(folder / "twice");
            }).find("twice:4: the synset 00000001 comes twice"),
            std::string::npos);
  EXPECT_NE(sentence<DataError>([&] {
              load_hypernym(folder / "data.noun", Purpose::kTrain);
            }).find("too few to train and test on"),
            std::string::npos);
  EXPECT_NE(sentence<DataError>([&] { read_nouns(folder / "none"); }).find("none does not exist"),
            std::string::npos);
  EXPECT_EQ(with_article("apple") + with_article("dog") + with_article("Canis"), "an applea dogCanis");
}

TEST(Hypernym, BuildsPairsFromAllOfWordNet) {
  if (!std::filesystem::exists(std::string(kWordNetFolder) + "/data.noun"))
    GTEST_SKIP() << "needs wordnet-base";
  const TextTask task = load_hypernym({}, Purpose::kTrain);
  EXPECT_EQ(task.labels, (std::vector<std::string>{"entails", "does_not"}));
  EXPECT_EQ(task.train.size(), 40000U);
  EXPECT_EQ(task.test.size(), 4000U);
  const auto follows = [](const TextExample& example) { return example.label == 0; };
  EXPECT_EQ(std::count_if(task.train.begin(), task.train.end(), follows), 20000);
  EXPECT_EQ(std::count_if(task.test.begin(), task.test.end(), follows), 2000);
  std::set<std::string> trained;
  for (const TextExample& example : task.train) trained.insert(example.a);
  EXPECT_EQ(trained.size(), 20000U) << "two pairs of every synset";
  std::string all;
  for (const TextExample& example : task.test) {
    EXPECT_EQ(trained.count(example.a), 0U) << example.a;
    all += example.a + "\t" + example.b + "\n";
  }
  EXPECT_EQ(stable_hash(all), 0x19c81bfece655d9fULL) << "the test split must never change";
  // The negatives must be hard: a noun alone must not tell the label. Foil: guess by how a noun is mostly
  // used.
  std::map<std::string, int> votes;
  const auto noun_of = [](const TextExample& example) {
    return example.b.substr(example.b.find(" is a kind of "));
  };
  for (const TextExample& example : task.train) votes[noun_of(example)] += example.label == 0 ? 1 : -1;
  int right = 0;
  for (const TextExample& example : task.test) {
    const auto found = votes.find(noun_of(example));
    right += (found != votes.end() && found->second > 0) == (example.label == 0);
  }
  EXPECT_LT(right, 2500) << "of 4,000; guessing alone gives 2,000";
  const TextTask evaluate = load_hypernym({}, Purpose::kEvaluate);
  EXPECT_TRUE(evaluate.train.empty());
  ASSERT_EQ(evaluate.test.size(), 4000U);
  EXPECT_EQ(evaluate.test[17].b, task.test[17].b);
}

}  // namespace
}  // namespace syncopate::corpora
