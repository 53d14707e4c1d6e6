#include "syncopate/corpora/wordnet/wordnet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using test::sentence;

TEST(WordNet, ReadsAllOfDebiansPackage) {
  if (!std::filesystem::exists(std::string(kWordNetFolder) + "/data.noun"))
    GTEST_SKIP() << "needs wordnet-base";
  const TextTask task = load_supersense({}, Purpose::kTrain);
  EXPECT_EQ(task.labels.size(), 45U);
  EXPECT_EQ(task.train.size() + task.test.size(), 117659U);
  ASSERT_EQ(task.test.size(), 4000U);
  std::string all;
  std::set<int64_t> classes;
  for (const TextExample& example : task.test) all += (all.empty() ? "" : "\n") + example.a;
  for (const TextExample& example : task.train) classes.insert(example.label);
  EXPECT_EQ(classes.size(), 45U);
  EXPECT_EQ(stable_hash(all), 0xb6f12392848ec819ULL) << "the test split must never change";
  EXPECT_EQ(task.train[0].a,
            "that which is perceived or known or inferred to have its own distinct existence (living or "
            "nonliving)");
  EXPECT_EQ(task.labels[static_cast<size_t>(task.train[0].label)], "noun.Tops");
  const TextTask evaluate = load_supersense({}, Purpose::kEvaluate);
  EXPECT_EQ(evaluate.test.size(), 4000U);
  EXPECT_TRUE(evaluate.train.empty());
}

constexpr const char* kLicence = "  1 This software and database is being provided to you\n";
constexpr const char* kDog =
    "02084071 05 n 03 dog 0 domestic_dog 0 Canis_familiaris 0 002 @ 02083346 n 0000 | a member of the genus "
    "Canis; "
    "\"the dog barked\"  \n";
constexpr const char* kRun = "01926311 38 v 01 run 0 001 @ 01835496 v 0000 01 + 02 00 | move fast  \n";
constexpr const char* kAble = "00001740 00 a 01 able 0 000 | having the means  \n";
constexpr const char* kAbly = "00001740 02 r 01 ably 0 000 | with competence  \n";

class SmallWordNet : public testing::Test {
 protected:
  SmallWordNet() {
    write("data.noun", fmt::format("{}{}", kLicence, kDog));
    write("data.verb", kRun);
    write("data.adj", kAble);
    write("data.adv", kAbly);
  }
  void write(const std::string& name, const std::string& text) {
    syncopate::test::write_text(folder_ / name, text);
  }
  TextTask load(Purpose purpose = Purpose::kTrain) { return load_supersense(folder_.path(), purpose); }
  std::string fault(const std::string& line) {
    write("data.verb", kRun + line);
    return sentence<DataError>([&] { load(); });
  }
  syncopate::test::TempDir folder_;
};

TEST_F(SmallWordNet, ReadsDefinitionsAndClasses) {
  const TextTask task = load();
  EXPECT_EQ(task.train.size(), 3U);
  EXPECT_EQ(task.test.size(), 1U);
  const TextTask one = load_supersense(folder_ / "data.noun", Purpose::kEvaluate);
  ASSERT_EQ(one.test.size(), 1U) << "one file is used whole";
  EXPECT_EQ(one.test[0].a, "a member of the genus Canis; \"the dog barked\"");
  EXPECT_EQ(one.labels[static_cast<size_t>(one.test[0].label)], "noun.animal");
  EXPECT_THROW(load_supersense(folder_ / "data.noun", Purpose::kTrain), DataError);
}

TEST_F(SmallWordNet, RejectsBadLinesWithLineNumbers) {
  EXPECT_EQ(fault(""), "");
  for (const char* line : {"01926312 38 v 01 run 0 000 no definition\n", "01926312 45 v 01 run 0 000 | x\n",
                           "0192631 38 v 01 run 0 000 | x\n", "01926312 38 q 01 run 0 000 | x\n",
                           "01926312 38 v 01 run 0 000 |   \n", "|\n", "01926312 38 v|x\n"}) {
    EXPECT_NE(fault(line).find("data.verb:2: "), std::string::npos) << line << fault(line);
  }
  write("data.verb", kLicence);
  EXPECT_NE(sentence<DataError>([&] { load(); }).find("holds no synsets"), std::string::npos);
}

TEST_F(SmallWordNet, NamesTheMissingFileOrPath) {
  std::filesystem::remove(folder_ / "data.adv");
  const std::string text = sentence<DataError>([&] { load(); });
  EXPECT_NE(text.find(" has no data.adv: this task reads WordNet's files"), std::string::npos) << text;
  EXPECT_EQ(text.find("apt-get"), std::string::npos) << "no package has this folder";
  const std::string nowhere = (folder_ / "nowhere").string();
  EXPECT_EQ(sentence<DataError>([&] { load_supersense(nowhere, Purpose::kTrain); }),
            nowhere + " does not exist; give WordNet's folder, or one of its files, as the data path");
}

}  // namespace
}  // namespace syncopate::corpora
