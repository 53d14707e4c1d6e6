#include "syncopate/data/squad_dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate::data {
namespace {

using test::sentence;

std::vector<int64_t> row(const at::Tensor& tensor, int64_t index) {
  const at::Tensor one = tensor[index].contiguous();
  return {one.data_ptr<int64_t>(), one.data_ptr<int64_t>() + one.numel()};
}

/// Words w0..w19 have the numbers 5..24.
text::WordPiece numbered() {
  std::vector<std::string> words;
  for (int i = 0; i < 20; ++i) words.push_back(fmt::format("w{}", i));
  return text::WordPiece(test::vocabulary_of(words), text::rules_for(true));
}

std::string words(int from, int count) {
  std::string text;
  for (int i = from; i < from + count; ++i) text += fmt::format("{}w{}", text.empty() ? "" : " ", i);
  return text;
}

TEST(SquadDataset, FingerprintTellsQuestionsContextsAndAnswersApart) {
  const auto mark = [](const std::string& question, const std::string& context, const std::string& answer) {
    const std::vector<std::string> contexts{context};
    const std::vector<corpora::Question> questions{
        {"a", question, 0, {{answer, static_cast<int64_t>(context.find(answer))}}}};
    return SquadDataset(questions, contexts, numbered(), {.max_length = 20, .stride = 2, .max_question = 4})
        .fingerprint();
  };
  const uint64_t plain = mark("w17", words(0, 5), "w3");
  EXPECT_EQ(mark("w17", words(0, 5), "w3"), plain);
  EXPECT_NE(mark("w18", words(0, 5), "w3"), plain);
  EXPECT_NE(mark("w17", words(1, 5), "w3"), plain);
  EXPECT_NE(mark("w17", words(0, 5), "w2"), plain);
}

TEST(SquadDataset, WindowsOverlapByTheStride) {
  const std::vector<std::string> contexts{words(0, 10), "w3", ""};
  const std::vector<corpora::Question> questions{
      {"a", "w17 w18 w19", 0, {{"w5 w6", 15}}}, {"b", "w1", 1, {}, true}, {"c", "w1", 2}};
  const SquadDataset dataset(questions, contexts, numbered(),
                             {.max_length = 9, .stride = 2, .max_question = 2});
  // Room for 9 - 3 - 2 = 4 pieces, each window 2 further: 0-3, 2-5, 4-7, 6-9.
  ASSERT_EQ(dataset.size(), 6);
  EXPECT_EQ(dataset.features_of(0), (std::pair<int64_t, int64_t>{0, 4}));
  EXPECT_EQ(dataset.features_of(2), (std::pair<int64_t, int64_t>{5, 6}));
  EXPECT_EQ(dataset.question_of(3), 0);
  EXPECT_EQ(dataset.question_of(4), 1);
  const std::vector<int64_t> ids{0, 1, 2, 3, 4, 5};
  const tensor::Batch batch = dataset.collate(ids, 0);
  EXPECT_EQ(batch.ids, ids);
  const int64_t cls = 2, sep = 3;
  EXPECT_EQ(row(batch.at("input_ids"), 0), (std::vector<int64_t>{cls, 22, 23, sep, 5, 6, 7, 8, sep}));
  EXPECT_EQ(row(batch.at("input_ids"), 2), (std::vector<int64_t>{cls, 22, 23, sep, 9, 10, 11, 12, sep}));
  EXPECT_EQ(row(batch.at("input_ids"), 3), (std::vector<int64_t>{cls, 22, 23, sep, 11, 12, 13, 14, sep}));
  EXPECT_EQ(row(batch.at("input_ids"), 4), (std::vector<int64_t>{cls, 6, sep, 8, sep, 0, 0, 0, 0}));
  EXPECT_EQ(row(batch.at("token_type_ids"), 4), (std::vector<int64_t>{0, 0, 0, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(row(batch.at("attention_mask"), 4), (std::vector<int64_t>{1, 1, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(row(batch.at("input_ids"), 5), (std::vector<int64_t>{cls, 6, sep, sep, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.real_tokens, 4 * 9 + 5 + 4);
  // w5 w6 are pieces 5 and 6: wholly in the third window alone, positions 4 + 1 and 4 + 2.
  const auto all = [&](const char* name) {
    const at::Tensor field = batch.at(name);
    return std::vector<int64_t>(field.data_ptr<int64_t>(), field.data_ptr<int64_t>() + field.numel());
  };
  EXPECT_EQ(all("starts"), (std::vector<int64_t>{0, 0, 5, 0, 0, 0}));
  EXPECT_EQ(all("ends"), (std::vector<int64_t>{0, 0, 6, 0, 0, 0}));
  EXPECT_EQ(dataset.window(2), (std::pair<int64_t, int64_t>{4, 8}));
  EXPECT_EQ(dataset.place(2, 5), (text::ByteRange{15, 17}));
  EXPECT_EQ(dataset.context_of(2).substr(15, 5), "w5 w6");
  EXPECT_THROW(dataset.place(2, 3), InternalError);
  EXPECT_EQ(dataset.collate({}, 0).size(), 0);
}

TEST(SquadDataset, AnswerInsideAWordMapsToItsPiece) {
  const text::WordPiece tokenizer(test::vocabulary_of({"a", "##b", "##c", "d"}), text::rules_for(true));
  const std::vector<std::string> contexts{"d ábc d"};
  const std::vector<corpora::Question> questions{
      {"a", "d", 0, {{"b", 3}}}, {"b", "d", 0, {{"ábc", 2}}}, {"c", "d", 0, {{" á", 1}}}};
  const SquadDataset dataset(questions, contexts, tokenizer,
                             {.max_length = 16, .stride = 1, .max_question = 4});
  const tensor::Batch batch = dataset.collate(std::vector<int64_t>{0, 1, 2}, 0);
  const auto span = [&](int64_t id) {
    return std::pair{batch.at("starts").data_ptr<int64_t>()[id], batch.at("ends").data_ptr<int64_t>()[id]};
  };
  EXPECT_EQ(span(0), (std::pair<int64_t, int64_t>{5, 5}));
  EXPECT_EQ(span(1), (std::pair<int64_t, int64_t>{4, 6}));
  EXPECT_EQ(span(2), (std::pair<int64_t, int64_t>{3, 4}))
      << "as transformers: the last piece that begins at or before it";
}

TEST(SquadDataset, RejectsWindowsThatCannotAdvance) {
  const std::vector<std::string> contexts{"w1"};
  const auto fault = [&](WindowOptions options) {
    return sentence<ConfigError>([&] { SquadDataset({}, contexts, numbered(), options); });
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({.max_length = 196, .stride = 128, .max_question = 64}), "");
  EXPECT_EQ(fault({.max_length = 195, .stride = 128, .max_question = 64}),
            "with questions of up to 64 pieces and a stride of 128 the windows cannot advance: max_length "
            "must be 196 or more, got 195");
  EXPECT_NE(fault({.max_length = 384, .stride = -1, .max_question = 64}), "");
}

TEST(SquadOracle, FeatureMatchesTransformers) {
  SYNCOPATE_NEED_SHARED(oracle, "oracles/qa");
  const auto expected = nlohmann::json::parse(syncopate::test::read_text(oracle / "expect.json"));
  const text::WordPiece tokenizer = text::WordPiece::load(oracle);
  const std::vector<std::string> contexts{expected["context"].get<std::string>()};
  const auto length = expected["max_length"].get<int64_t>();
  // The pieces start..end of the feature as a stretch of the context.
  const auto pieces = tokenizer.encode_with_offsets(contexts[0]);
  const auto asked = static_cast<int64_t>(tokenizer.encode(expected["question"].get<std::string>()).size());
  const auto piece = [&](const char* name) {
    return pieces[static_cast<size_t>(expected[name].get<int64_t>() - asked - 2)];
  };
  const int64_t begin = piece("start").begin, end = piece("end").end;
  const std::string answer = contexts[0].substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  const std::vector<corpora::Question> questions{
      {"q",
       expected["question"].get<std::string>(),
       0,
       {{answer,
         corpora::code_points(std::string_view(contexts[0]).substr(0, static_cast<size_t>(begin)))}}}};
  const SquadDataset dataset(questions, contexts, tokenizer,
                             {.max_length = length, .stride = 0, .max_question = 64});
  const tensor::Batch batch = dataset.collate(std::vector<int64_t>{0}, 0);
  EXPECT_EQ(nlohmann::json(row(batch.at("input_ids"), 0)), expected["input_ids"]);
  EXPECT_EQ(nlohmann::json(row(batch.at("token_type_ids"), 0)), expected["token_type_ids"]);
  EXPECT_EQ(batch.at("starts").item<int64_t>(), expected["start"].get<int64_t>());
  EXPECT_EQ(batch.at("ends").item<int64_t>(), expected["end"].get<int64_t>());
  EXPECT_GT(dataset.size(), 1) << "what is cut off is in the next window";
}

TEST(SquadShared, EveryTrainingAnswerIsRecoveredFromItsWindow) {
  SYNCOPATE_NEED_SHARED(folder, "data/squad_v1.1");
  SYNCOPATE_NEED_SHARED(vocabulary, "data/bert_vocab/vocab.txt");
  corpora::SquadTask task = corpora::load_squad(folder, corpora::Purpose::kTrain);
  const SquadDataset dataset(task.train, task.contexts, text::WordPiece::load(vocabulary), {});
  EXPECT_EQ(dataset.questions(), 4370);
  EXPECT_GT(dataset.size(), 4370) << "some contexts need two windows";
  std::vector<int64_t> ids(static_cast<size_t>(dataset.size()));
  std::iota(ids.begin(), ids.end(), 0);
  const tensor::Batch batch = dataset.collate(ids, 0);
  std::vector<int> found(task.train.size(), 0);
  int same = 0, answered = 0;
  for (const int64_t id : ids) {
    const int64_t start = batch.at("starts").data_ptr<int64_t>()[id],
                  end = batch.at("ends").data_ptr<int64_t>()[id];
    if (start == 0) continue;
    const auto question = static_cast<size_t>(dataset.question_of(id));
    const int64_t begin = dataset.place(id, start).begin;
    const std::string text(dataset.context_of(id).substr(
        static_cast<size_t>(begin), static_cast<size_t>(dataset.place(id, end).end - begin)));
    const std::string& gold = task.train[question].answers[0].text;
    ASSERT_NE(text.find(gold), std::string::npos) << text << " for " << gold;
    ++answered;
    same += text == gold;
    found[question] = 1;
  }
  EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0), 4370) << "every answer is wholly in some window";
  EXPECT_GT(same, answered * 98 / 100) << "some answers are parts of words; of " << answered;
}

}  // namespace
}  // namespace syncopate::data
