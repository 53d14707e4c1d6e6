// Targets: tables, WordNet, question answering.
#include <map>
#include <nlohmann/json.hpp>

#include "syncopate/base/text.h"
#include "syncopate/corpora/squad/squad_score.h"
#include "syncopate/corpora/task.h"
#include "syncopate/corpora/wordnet/definition_qa.h"
#include "syncopate/corpora/wordnet/hypernym.h"
#include "syncopate/corpora/wordnet/wordnet.h"
#include "syncopate/data/squad_answers.h"
#include "tests/data/fuzz.h"
#include "tests/support/fixtures.h"
#include "tests/support/image_files.h"

namespace syncopate::test {
namespace {

using Folder = std::filesystem::path;

constexpr const char* kGlue =
    "index\tsentence1\tsentence2\tlabel\n0\tNo weapons.\tWeapons.\tnot_entailment\n1\tA café\tA "
    "place\tentailment\n2\tx y z\tz\tentailment\n";
constexpr const char* kCsv =
    "\xEF\xBB\xBFid,\"text\",label\r\n1,\"He said \"\"no\"\", twice\",a\r\n2,\"two\nlines\",b\r\n3,plain \" "
    "quote,a\r\n4,,b\r\n";
constexpr const char* kTsv = "text\tlabel\n\"a\tb\"\t1\nc\t2\n\"\"\"d\"\"\"\t1\n";
constexpr const char* kJsonLines =
    "{\"gold_label\": \"entailment\", \"annotator_labels\": [\"a\", {}], \"sentence1\": \"A caf\\u00e9\", "
    "\"sentence2\": \"B\"}\n"
    "{\"gold_label\": \"-\", \"annotator_labels\": [], \"sentence1\": \"C\", \"sentence2\": \"D\"}\n"
    "{\"gold_label\": \"neutral\", \"annotator_labels\": 3, \"sentence1\": \"E\", \"sentence2\": \"F\"}\n";
constexpr const char* kJsonArray =
    "[{\"label\": 1, \"text\": \"one \\\"}] é\", \"more\": [{\"a\": []}]},\n {\"label\": 0, \"text\": "
    "\"two\", "
    "\"more\": null},\n {\"more\": 1,\n \"text\": \"three\", \"label\": 1}]\n";
constexpr const char* kSemicolons = "id;text;label\n1;\"a; b\";x\n2;c, d;y\n3;\"\"\"e\"\"\";x\n";
constexpr const char* kSquad =
    "{\"version\": \"v2.0\", \"data\": [{\"title\": \"T\", \"paragraphs\": [{\"context\": \"Café Noël is run "
    "by Ann. Bob helps.\", "
    "\"qas\": [{\"id\": \"1\", \"question\": \"Who runs it?\", \"answers\": [{\"text\": \"Ann\", "
    "\"answer_start\": 20}]}, "
    "{\"id\": \"2\", \"question\": \"Who?\", \"answers\": [], \"is_impossible\": true}]}, "
    "{\"context\": \"Eve is away\", \"qas\": [{\"id\": \"3\", \"question\": \"Where is Eve?\", \"answers\": "
    "[{\"text\": \"away\", \"answer_start\": 7}]}]}]}]}";
constexpr const char* kTexts =
    "Café Noël is run by Ann. Bob helps.\nWho runs it?\nAnn\n20\nAnn is Ann e\u0301ee [SEP] "
    "한글\nWho?\nAnn\n7\n"
    "Eve\nWho?\nEve\n0\n";
constexpr const char* kWordNet =
    "  1 This software is provided\n"
    "00000001 05 n 01 animal 0 002 ~ 00000002 n 0000 ~ 00000005 n 0000 | a living thing that moves about by "
    "itself and eats what it finds on its way  \n"
    "00000002 05 n 02 canine 0 canid 0 002 @ 00000001 n 0000 ~ 00000003 n 0000 | an animal with teeth that "
    "hunts in packs in woods and fields by day and night  \n"
    "00000003 05 n 01 dog 0 002 @ 00000002 n 0000 ~ 00000004 n 0000 | a member of the genus Canis that barks "
    "at strangers and guards the house; \"the dog barked\"  \n"
    "00000004 05 n 01 puppy 0 001 @ 00000003 n 0000 | a young dog that has not yet learned to behave in "
    "the house or elsewhere  \n"
    "00000005 05 n 01 feline 0 002 @ 00000001 n 0000 ~ 00000006 n 0000 | an animal with whiskers that hunts "
    "alone at night in gardens and on roofs  \n"
    "00000006 05 n 01 cat 0 002 @ 00000005 n 0000 ~ 00000007 n 0000 | a feline that lives in houses and "
    "likes "
    "to sleep in the sun all day  \n"
    "00000007 05 n 01 kitten 0 001 @ 00000006 n 0000 | a young cat that plays with wool and anything else it "
    "can find in the house  \n"
    "00000008 05 n 01 house 0 000 | a building in which people and their dogs and cats live for most of "
    "their time  \n"
    "00000009 05 n 01 roof 0 000 | the top of a house under which people keep dry when it rains on a "
    "winter day  \n";

void load_as_both(const std::string& task, const char* file, const std::string& bytes, const Folder& scratch,
                  const std::string& encoding = "replace") {
  write_fresh(scratch / file, bytes);
  const corpora::TextSource source{.task = task,
                                   .path = scratch / file,
                                   .text = "text",
                                   .text_pair = {},
                                   .label = "label",
                                   .labels = {},
                                   .form = {.encoding = encoding}};
  corpora::load_task(source, corpora::Purpose::kPredict);
  corpora::load_task(source, corpora::Purpose::kTrain);
}

/// The way of a file to scored answers.
void answer_questions(const std::string& bytes, const Folder& scratch) {
  static const text::WordPiece kTokenizer(vocabulary_of({"ann", "bob", "cafe", "e", "##e", "is", "."}),
                                          text::rules_for(true));
  write_fresh(scratch / "x.json", bytes);
  corpora::load_squad(scratch / "x.json", corpora::Purpose::kPredict);
  corpora::load_squad(scratch / "x.json", corpora::Purpose::kTrain);
  const corpora::SquadTask task = corpora::load_squad(scratch / "x.json", corpora::Purpose::kEvaluate);
  const data::SquadDataset dataset(task.test, task.contexts, kTokenizer,
                                   {.max_length = 12, .stride = 2, .max_question = 4});
  std::vector<data::FeatureAnswers> found;
  const std::vector<float> logits(12, 0.5F);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const int64_t ids[] = {i};
    dataset.collate(ids, 0);
    found.push_back(data::best_spans(dataset, i, logits, logits));
  }
  std::map<std::string, std::string> predictions;
  const auto answers =
      data::final_answers(dataset, found, {.may_be_empty = corpora::has_impossible(task.test)});
  for (size_t i = 0; i < answers.size(); ++i) predictions[task.test[i].id] = answers[i];
  corpora::score_predictions(task.test, predictions);
}

/// A well-formed file made of any lines: context, question, answer, its offset, and again. Damage to JSON
/// itself is mostly refused by its parser; this goes behind it.
void answer_texts(const std::string& bytes, const Folder& scratch) {
  nlohmann::json paragraphs = nlohmann::json::array();
  const auto lines = split(bytes, '\n');
  for (size_t i = 0; i + 3 < lines.size(); i += 4) {
    const nlohmann::json answer{{"text", lines[i + 2]},
                                {"answer_start", parse_integer(lines[i + 3]).value_or(0)}};
    const nlohmann::json asked{{"id", std::to_string(i)}, {"question", lines[i + 1]}, {"answers", {answer}}};
    paragraphs.push_back({{"context", lines[i]}, {"qas", {asked}}});
  }
  const nlohmann::json file{{"data", {{{"paragraphs", paragraphs}}}}};
  answer_questions(file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), scratch);
}

}  // namespace

std::vector<FuzzTarget> table_targets() {
  return {
      {"glue tsv", kGlue,
       [](const auto& bytes, const auto& scratch) { load_as_both("rte", "x.tsv", bytes, scratch); }},
      {"csv", kCsv,
       [](const auto& bytes, const auto& scratch) { load_as_both("csv", "x.csv", bytes, scratch); }},
      {"quoted tsv", kTsv,
       [](const auto& bytes, const auto& scratch) { load_as_both("csv", "x.tsv", bytes, scratch); }},
      {"json lines", kJsonLines,
       [](const auto& bytes, const auto& scratch) { load_as_both("mnli", "x.jsonl", bytes, scratch); }},
      {"json array", kJsonArray,
       [](const auto& bytes, const auto& scratch) { load_as_both("csv", "x.json", bytes, scratch); }},
      {"semicolons", kSemicolons,
       [](const auto& bytes, const auto& scratch) { load_as_both("csv", "x.csv", bytes, scratch); }},
      {"csv gz", gzipped(kCsv),
       [](const auto& bytes, const auto& scratch) { load_as_both("csv", "x.csv.gz", bytes, scratch); }},
      {"csv utf-8", kCsv,
       [](const auto& bytes, const auto& scratch) { load_as_both("csv", "x.csv", bytes, scratch, "utf-8"); }},
      {"csv windows", kCsv,
       [](const auto& bytes, const auto& scratch) {
         load_as_both("csv", "x.csv", bytes, scratch, "windows-1252");
       }},
      {"squad", kSquad, answer_questions},
      {"squad texts", kTexts, answer_texts},
      {"predictions", R"({"1": "Ann", "2": "", "3": "the Café Σ\u0130"})",
       [](const auto& bytes, const auto& scratch) {
         corpora::normalized_answer(bytes);
         write_fresh(scratch / "p.json", bytes);
         for (const auto& [id, text] : corpora::read_predictions(scratch / "p.json"))
           corpora::score_answer(text, {id, "Ann", bytes}, true);
       }},
      {"supersense", kWordNet,
       [](const auto& bytes, const auto& scratch) {
         load_as_both("supersense", "data.noun", bytes, scratch);
       }},
      {"hypernym", kWordNet,
       [](const auto& bytes, const auto& scratch) { load_as_both("hypernym", "data.noun", bytes, scratch); }},
      {"definition_qa", kWordNet,
       [](const auto& bytes, const auto& scratch) {
         write_fresh(scratch / "data.noun", bytes);
         corpora::load_definition_qa(scratch / "data.noun", corpora::Purpose::kTrain);
       }},
  };
}

}  // namespace syncopate::test
