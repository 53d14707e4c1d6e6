#include "syncopate/corpora/squad/squad.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "syncopate/corpora/wordnet/definition_qa.h"
#include "syncopate/corpora/wordnet/wordnet.h"
#include "tests/support/fixtures.h"
#include "tests/support/image_files.h"
#include "tests/support/support.h"

namespace syncopate::corpora {
namespace {

using syncopate::test::TempDir;
using syncopate::test::write_text;
using test::sentence;
using Json = nlohmann::json;
using Notes = std::vector<std::string>;

Json answer(const std::string& text, int64_t start) { return {{"text", text}, {"answer_start", start}}; }

Json question(const std::string& id, const Json& answers) {
  return {{"id", id}, {"question", "Who is " + id + "?"}, {"answers", answers}};
}

Json paragraph(const std::string& context, const Json& questions) {
  return {{"context", context}, {"qas", questions}};
}

Json file_of(const Json& paragraphs) {
  return {{"version", "1.1"}, {"data", Json::array({{{"title", "Cafés"}, {"paragraphs", paragraphs}}})}};
}

/// `start` counts code points: é is one of them and two bytes.
const char* const kContext = "Café Noël is run by Ann. Bob helps Bob.";

class Squad : public testing::Test {
 protected:
  void write(const std::string& name, const Json& file) { write_text(folder_ / name, file.dump()); }
  std::string fault(const Json& file, Purpose purpose = Purpose::kEvaluate) {
    write("x.json", file);
    const std::string said = sentence<DataError>([&] { load_squad(folder_ / "x.json", purpose); });
    return said.empty() ? said : said.substr((folder_ / "x.json").string().size());
  }
  TempDir folder_;
};

TEST_F(Squad, OffsetsAreCodePointsAndWrongOnesAreRepaired) {
  const Json questions = Json::array(
      {question("right", Json::array({answer("Ann", 20)})),
       question("once", Json::array({answer("Noël", 3)})), question("twice", Json::array({answer("Bob", 2)})),
       question("never", Json::array({answer("Eve", 0)})),
       question("second", Json::array({answer("Bob", 35), answer("Ann", 900)}))});
  write("train-x.json", file_of(Json::array({paragraph(kContext, questions)})));
  write("dev-x.json", file_of(Json::array({paragraph(kContext, questions)})));
  const SquadTask task = load_squad(folder_.path(), Purpose::kTrain);
  ASSERT_EQ(task.contexts.size(), 1U) << "a paragraph is kept once";
  ASSERT_EQ(task.train.size(), 3U);
  EXPECT_EQ(task.train[0].id, "right");
  EXPECT_EQ(task.train[0].answers[0].start, 20);
  EXPECT_EQ(task.train[1].answers[0], (Answer{"Noël", 5}));
  EXPECT_EQ(task.train[2].answers[0], (Answer{"Bob", 35})) << "right though it occurs twice";
  EXPECT_EQ(task.train[2].answers[1], (Answer{"Ann", 20}));
  EXPECT_EQ(task.test.size(), 5U) << "scores count every question";
  EXPECT_EQ(task.notes, (Notes{"4 answers were not at their offsets and were put where their text is",
                               "2 questions were left out of training: their answer is not in the context"}));
  EXPECT_TRUE(load_squad(folder_.path(), Purpose::kEvaluate).train.empty());
  EXPECT_EQ(byte_of_code_point(kContext, 20), 22);
  EXPECT_EQ(byte_of_code_point("é", 1), 2);
  EXPECT_EQ(byte_of_code_point("é", 2), -1);
  EXPECT_EQ(byte_of_code_point("é", -1), -1);
}

TEST_F(Squad, ImpossibleQuestionsAndPredictionNeedNoAnswer) {
  Json impossible = question("none", Json::array());
  impossible["is_impossible"] = true;
  Json bare = question("bare", Json::array());
  bare.erase("answers");
  const Json some = question("some", Json::array({answer("Ann", 20)}));
  write("v2.json", file_of(Json::array({paragraph(kContext, Json::array({impossible, some}))})));
  const SquadTask task = load_squad(folder_ / "v2.json", Purpose::kEvaluate);
  ASSERT_EQ(task.test.size(), 2U);
  EXPECT_TRUE(task.test[0].impossible);
  EXPECT_TRUE(has_impossible(task.test));
  EXPECT_FALSE(has_impossible({task.test[1]}));
  const Json unanswered = file_of(Json::array({paragraph(kContext, Json::array({bare}))}));
  EXPECT_NE(fault(unanswered).find("\"answers\" is missing"), std::string::npos);
  EXPECT_EQ(fault(unanswered, Purpose::kPredict), "");
}

TEST_F(Squad, SingleFileIsSplitByParagraph) {
  Json paragraphs = Json::array();
  for (int i = 0; i < 40; ++i) {
    const std::string context = "Number " + std::to_string(i) + " is Ann.";
    const auto at = static_cast<int64_t>(context.find("Ann"));
    Json questions = Json::array();
    for (int k = 0; k < 3; ++k)
      questions.push_back(question(std::to_string(i * 3 + k), Json::array({answer("Ann", at)})));
    paragraphs.push_back(paragraph(context, questions));
  }
  write("x.json", file_of(paragraphs));
  const SquadTask task = load_squad(folder_ / "x.json", Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 108U);
  EXPECT_EQ(task.test.size(), 12U);
  std::set<int64_t> trained, tested;
  for (const Question& one : task.train) trained.insert(one.context);
  for (const Question& one : task.test) tested.insert(one.context);
  EXPECT_EQ(trained.size() + tested.size(), 40U) << "a paragraph's questions stay together";
  EXPECT_NE(tested, (std::set<int64_t>{0, 1, 2, 3})) << "not simply the start of the file";
  EXPECT_EQ(load_squad(folder_ / "x.json", Purpose::kEvaluate).test.size(), 120U);
  EXPECT_EQ(fault(file_of(Json::array({paragraphs[0]})), Purpose::kTrain),
            " has one paragraph, too few to train and test on");
}

TEST_F(Squad, ReportsMissingFields) {
  const Json good = file_of(
      Json::array({paragraph(kContext, Json::array({question("q1", Json::array({answer("Ann", 20)}))}))}));
  EXPECT_EQ(fault(good), "");
  const auto without = [&](const char* pointer, const char* key) {
    Json file = good;
    file[Json::json_pointer(pointer)].erase(key);
    return fault(file);
  };
  EXPECT_EQ(without("", "data"), ": \"data\" is missing; give a file in SQuAD's form");
  EXPECT_EQ(without("/data/0", "paragraphs"),
            ": article 1 (\"Cafés\"): \"paragraphs\" is missing; give a file in SQuAD's form");
  EXPECT_EQ(without("/data/0/paragraphs/0", "context"),
            ": article 1 (\"Cafés\"), paragraph 1: \"context\" is missing; give a file in SQuAD's form");
  EXPECT_EQ(
      without("/data/0/paragraphs/0/qas/0", "id"),
      ": article 1 (\"Cafés\"), paragraph 1, question 1: \"id\" is missing; give a file in SQuAD's form");
  EXPECT_EQ(without("/data/0/paragraphs/0/qas/0", "question"),
            ": article 1 (\"Cafés\"), paragraph 1, question 1 (q1): \"question\" is missing; give a file in "
            "SQuAD's form");
  EXPECT_NE(
      without("/data/0/paragraphs/0/qas/0/answers/0", "text").find("question 1 (q1): \"text\" is missing"),
      std::string::npos);
  const auto with = [&](const char* pointer, const Json& value) {
    Json file = good;
    file[Json::json_pointer(pointer)] = value;
    return fault(file);
  };
  EXPECT_NE(with("/data", 1).find("\"data\" is not a list"), std::string::npos);
  EXPECT_NE(with("/data/0", 1).find("\"paragraphs\" is missing"), std::string::npos);
  EXPECT_NE(with("/data", Json::array()).find("holds no questions"), std::string::npos);
  EXPECT_NE(with("/data/0/paragraphs/0/qas/0/question", 1).find("(q1): \"question\" is not text"),
            std::string::npos);
  EXPECT_NE(with("/data/0/paragraphs/0/qas/0/is_impossible", "no").find("is neither true nor false"),
            std::string::npos);
  EXPECT_NE(with("/data/0/paragraphs/0/qas/0/answers", Json::array())
                .find("(q1): there is no answer; give one, or mark it \"is_impossible\": true"),
            std::string::npos);
  EXPECT_NE(with("/data/0/paragraphs/0/qas/0/answers/0/answer_start", "20")
                .find("\"answer_start\" is not a whole number"),
            std::string::npos);
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  write_text(folder_ / "x.json", "{\"data\": " + deep + "}");
  EXPECT_THROW(load_squad(folder_ / "x.json", Purpose::kTrain), DataError) << "nesting is no crash";
  write_text(folder_ / "x.json", "{");
  EXPECT_NE(sentence<DataError>([&] { load_squad(folder_ / "x.json", Purpose::kTrain); }).find("is not JSON"),
            std::string::npos);
  EXPECT_EQ(sentence<ConfigError>([&] { load_squad({}, Purpose::kTrain); }),
            "the task squad needs data: give a folder with train-v1.1.json and dev-v1.1.json, or a single "
            "file, as its data path");
}

TEST(SquadParquet, IsRefusedWithWhatIsNeeded) {
  const test::TempDir folder;
  test::write_text(folder / "train-00000.parquet", "PAR1 and so on");
  for (const std::filesystem::path& path : {folder.path(), folder / "train-00000.parquet"}) {
    const std::string said = test::sentence<DataError>([&] { load_squad(path, Purpose::kTrain); });
    EXPECT_NE(said.find("give SQuAD's own JSON"), std::string::npos) << said;
  }
}

TEST_F(Squad, WriteAndReadRoundTrip) {
  Json impossible = question("none", Json::array());
  impossible["is_impossible"] = true;
  write("a.json",
        file_of(Json::array(
            {paragraph("Zoë.", Json::array({impossible})),
             paragraph(kContext, Json::array({question("q", Json::array({answer("Ann", 20)}))}))})));
  const SquadTask task = load_squad(folder_ / "a.json", Purpose::kEvaluate);
  write_squad(folder_ / "b.json", "again", task.contexts, task.test);
  const SquadTask again = load_squad(folder_ / "b.json", Purpose::kEvaluate);
  EXPECT_EQ(again.contexts, task.contexts);
  EXPECT_EQ(again.test, task.test);
  EXPECT_NE(sentence<DataError>([&] {
              write_squad(folder_ / "c.json", "x", {"\xFF"}, {{"q", "?", 0}});
            }).find("c.json cannot be written: a text is not UTF-8"),
            std::string::npos);
}

TEST_F(Squad, ReadsGzipAndOtherEncodings) {
  const Json asked = Json::array({question("q", Json::array({answer("Ann", 20)}))});
  const std::string text =
      file_of(Json::array({paragraph(kContext, asked), paragraph("Zo\\. Ann.", asked)})).dump();
  write_text(folder_ / "train-x.json.gz", test::gzipped(text));
  write_text(folder_ / "dev-x.json", text);
  EXPECT_EQ(load_squad(folder_.path(), Purpose::kTrain).train.size(), 2U);
  std::string latin;  // é and ë are one byte there
  for (size_t i = 0; i < text.size(); ++i)
    latin += text[i] == '\xC3' ? static_cast<char>(text[++i] + 0x40) : text[i];
  write_text(folder_ / "latin.json", latin);
  EXPECT_EQ(load_squad(folder_ / "latin.json", Purpose::kEvaluate, "latin-1").contexts[0], kContext);
  EXPECT_NE(sentence<DataError>([&] {
              load_squad(folder_ / "latin.json", Purpose::kEvaluate);
            }).find("is not UTF-8"),
            std::string::npos)
      << "the foil";
}

TEST(SquadShared, FilesHaveTheirPublishedSizes) {
  SYNCOPATE_NEED_SHARED(folder, "data/squad_v1.1");
  const SquadTask task = load_squad(folder, Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 4370U);
  EXPECT_EQ(task.test.size(), 10570U);
  size_t answers = 0;
  for (const Question& one : task.test) answers += one.answers.size();
  EXPECT_EQ(answers, 34726U);
  EXPECT_FALSE(has_impossible(task.test));
  for (const std::string& note : task.notes) ADD_FAILURE() << note;
}

TEST(DefinitionQa, BuildsParagraphsFromAllOfWordNet) {
  if (!std::filesystem::exists(std::string(kWordNetFolder) + "/data.noun"))
    GTEST_SKIP() << "needs wordnet-base";
  const SquadTask task = load_definition_qa({}, Purpose::kTrain);
  EXPECT_EQ(task.train.size(), 20000U);
  EXPECT_EQ(task.test.size(), 2000U);
  std::set<std::string> ids;
  std::set<int64_t> tested;
  for (const Question& one : task.test) tested.insert(one.context);
  for (const auto* split : {&task.train, &task.test}) {
    for (const Question& one : *split) {
      const std::string& context = task.contexts[static_cast<size_t>(one.context)];
      const Answer& gold = one.answers.at(0);
      const int64_t byte = byte_of_code_point(context, gold.start);
      ASSERT_GE(byte, 0);
      ASSERT_EQ(context.substr(static_cast<size_t>(byte), gold.text.size()), gold.text);
      ASSERT_FALSE(gold.text.empty());
      const auto words = 1 + std::count(context.begin(), context.end(), ' ');
      ASSERT_TRUE(words >= 60 && words <= 120) << context;
      ids.insert(one.id);
      ASSERT_TRUE(split == &task.test || tested.count(one.context) == 0);
    }
  }
  EXPECT_EQ(ids.size(), 22000U);
  const TempDir folder;
  write_squad(folder / "test.json", "WordNet", task.contexts, task.test);
  EXPECT_EQ(load_squad(folder / "test.json", Purpose::kEvaluate).test.size(), 2000U);
  std::string all;
  for (const Question& one : task.test) all += one.question + "\t" + one.answers[0].text + "\n";
  EXPECT_EQ(stable_hash(all), 0xaee67d93c9988b91ULL) << "the test split must never change";
  EXPECT_TRUE(load_definition_qa({}, Purpose::kEvaluate).train.empty());
}

}  // namespace
}  // namespace syncopate::corpora
