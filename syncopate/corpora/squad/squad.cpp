#include "syncopate/corpora/squad/squad.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/text_file.h"

namespace syncopate::corpora {
namespace {

using Json = nlohmann::json;

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

const Json& field(const Json& object, const char* name, const std::string& where) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) {
    throw DataError("{}: \"{}\" is missing; give a file in SQuAD's form", where, name);
  }
  return *found;
}

const Json& list(const Json& object, const char* name, const std::string& where) {
  const Json& value = field(object, name, where);
  if (!value.is_array())
    throw DataError("{}: \"{}\" is not a list; give a file in SQuAD's form", where, name);
  return value;
}

std::string text_of(const Json& object, const char* name, const std::string& where) {
  const Json& value = field(object, name, where);
  if (!value.is_string()) throw DataError("{}: \"{}\" is not text; give a file in SQuAD's form", where, name);
  return value.get<std::string>();
}

enum class Placed { kRight, kRepaired, kLost };

Placed put_in_place(Answer& answer, const std::string& context) {
  if (answer.text.empty()) return Placed::kLost;
  const int64_t byte = byte_of_code_point(context, answer.start);
  if (byte >= 0 && std::string_view(context).substr(static_cast<size_t>(byte)).starts_with(answer.text)) {
    return Placed::kRight;
  }
  const size_t once = context.find(answer.text);
  if (once == std::string::npos || context.find(answer.text, once + 1) != std::string::npos)
    return Placed::kLost;
  answer.start = code_points(std::string_view(context).substr(0, once));
  return Placed::kRepaired;
}

class SquadReader {
 public:
  SquadReader(SquadTask& task, bool need_answers, const std::string& encoding)
      : task_(task), need_answers_(need_answers), encoding_(encoding) {}

  std::vector<Question> read(const std::filesystem::path& path) {
    const TextFile read = read_text_file(path, "SQuAD file", encoding_);
    task_.notes.insert(task_.notes.end(), read.notes.begin(), read.notes.end());
    const Json file = Json::parse(read.text, nullptr, /*allow_exceptions=*/false);
    if (file.is_discarded()) throw DataError("{} is not JSON; give a file in SQuAD's form", path.string());
    std::vector<Question> questions;
    size_t article_number = 0;
    for (const Json& article : list(file, "data", path.string())) {
      std::string in_article = fmt::format("{}: article {}", path.string(), ++article_number);
      if (article.is_object() && article.contains("title") && article["title"].is_string()) {
        in_article += fmt::format(" (\"{}\")", article["title"].get<std::string>().substr(0, 60));
      }
      size_t paragraph_number = 0;
      for (const Json& paragraph : list(article, "paragraphs", in_article)) {
        const std::string where = fmt::format("{}, paragraph {}", in_article, ++paragraph_number);
        const int64_t context = keep_context(text_of(paragraph, "context", where));
        size_t number = 0;
        for (const Json& entry : list(paragraph, "qas", where)) {
          questions.push_back(question(entry, context, fmt::format("{}, question {}", where, ++number)));
        }
      }
    }
    if (questions.empty())
      throw DataError("{} holds no questions; give a file in SQuAD's form", path.string());
    return questions;
  }

 private:
  int64_t keep_context(std::string context) {
    const auto [found, fresh] = numbers_.emplace(context, static_cast<int64_t>(task_.contexts.size()));
    if (fresh) task_.contexts.push_back(std::move(context));
    return found->second;
  }

  Question question(const Json& entry, int64_t context, std::string where) const {
    Question made;
    made.id = text_of(entry, "id", where);
    where += fmt::format(" ({})", made.id.substr(0, 60));
    made.question = text_of(entry, "question", where);
    made.context = context;
    if (const auto flag = entry.find("is_impossible"); flag != entry.end()) {
      if (!flag->is_boolean()) throw DataError("{}: \"is_impossible\" is neither true nor false", where);
      made.impossible = flag->get<bool>();
    }
    if (made.impossible || (!need_answers_ && !entry.contains("answers"))) return made;
    for (const Json& answer : list(entry, "answers", where)) {
      const Json& start = field(answer, "answer_start", where);
      if (!start.is_number_integer()) throw DataError("{}: \"answer_start\" is not a whole number", where);
      made.answers.push_back({text_of(answer, "text", where), start.get<int64_t>()});
    }
    if (need_answers_ && made.answers.empty()) {
      throw DataError("{}: there is no answer; give one, or mark it \"is_impossible\": true", where);
    }
    return made;
  }

  SquadTask& task_;
  const bool need_answers_;
  const std::string& encoding_;
  std::unordered_map<std::string, int64_t> numbers_;
};

/// Parquet files hold the questions as flat rows: converted, they would still not be in SQuAD's form.
void refuse_parquet_questions(const std::filesystem::path& path) {
  std::error_code unreadable;  // reading says why
  bool parquet = false;
  if (std::filesystem::is_directory(path, unreadable)) {
    parquet = files_with_ending(path, {".json"}).empty() && !files_with_ending(path, {".parquet"}).empty();
  } else {
    std::string magic(4, '\0');
    parquet = std::ifstream(path, std::ios::binary).read(magic.data(), 4) && magic == "PAR1";
  }
  if (!parquet) return;
  throw DataError(
      "{} is in Parquet, which is not read; give SQuAD's own JSON, train-v1.1.json and dev-v1.1.json",
      path.string());
}

/// Holds out the questions of a tenth of the paragraphs, those with the smallest hash.
void hold_out_paragraphs(const std::filesystem::path& path, SquadTask& task) {
  if (task.contexts.size() < 2) {
    throw DataError("{} has one paragraph, too few to train and test on", path.string());
  }
  std::vector<uint64_t> keys;
  for (const std::string& context : task.contexts) keys.push_back(stable_hash(context));
  const std::vector<char> held = held_out(keys, a_tenth(keys.size()));
  std::vector<Question> all = std::exchange(task.test, {});
  for (Question& question : all) {
    (held[static_cast<size_t>(question.context)] != 0 ? task.test : task.train)
        .push_back(std::move(question));
  }
  if (task.train.empty() || task.test.empty()) {
    throw DataError("the questions of {} are all about the same few paragraphs, too few to train and test on",
                    path.string());
  }
}

/// Repairs offsets; questions whose first answer has no place leave the training split.
void place_answers(const std::filesystem::path& path, SquadTask& task) {
  int64_t repaired = 0;
  const auto lost = [&](Question& question) {
    const std::string& context = task.contexts[static_cast<size_t>(question.context)];
    bool first_lost = false;
    for (size_t i = 0; i < question.answers.size(); ++i) {
      const Placed placed = put_in_place(question.answers[i], context);
      repaired += placed == Placed::kRepaired;
      if (i == 0) first_lost = placed == Placed::kLost;
    }
    return first_lost;
  };
  for (Question& question : task.test) lost(question);
  const size_t skipped = std::erase_if(task.train, lost);
  if (repaired > 0)
    task.notes.push_back(
        fmt::format("{} answers were not at their offsets and were put where their text is", repaired));
  if (skipped > 0)
    task.notes.push_back(
        fmt::format("{} questions were left out of training: their answer is not in the context", skipped));
  if (skipped > 0 && task.train.empty()) {
    throw DataError("{} has no training question whose answer is in its context; check \"answer_start\"",
                    path.string());
  }
}

}  // namespace

SquadTask load_squad(const std::filesystem::path& path, Purpose purpose, const std::string& encoding) {
  constexpr const char* kForm = "a folder with train-v1.1.json and dev-v1.1.json, or a single file,";
  if (path.empty()) throw ConfigError("the task squad needs data: give {} as its data path", kForm);
  require_data(path, kForm);
  refuse_parquet_questions(path);
  const SplitFiles files = find_splits(path, {".json"}, purpose);
  SquadTask task{.name = "squad", .contexts = {}, .train = {}, .test = {}, .notes = {}};
  SquadReader reader(task, purpose != Purpose::kPredict, encoding);
  task.test = reader.read(files.test);
  if (!files.train.empty()) task.train = reader.read(files.train);
  if (files.one_file && purpose == Purpose::kTrain) hold_out_paragraphs(path, task);
  place_answers(path, task);
  return task;
}

bool has_impossible(const std::vector<Question>& questions) {
  return std::any_of(questions.begin(), questions.end(),
                     [](const Question& question) { return question.impossible; });
}

void write_squad(const std::filesystem::path& path, const std::string& title,
                 const std::vector<std::string>& contexts, const std::vector<Question>& questions) {
  using Ordered = nlohmann::ordered_json;
  const bool with_impossible = has_impossible(questions);
  std::vector<Ordered> entries(contexts.size(), Ordered::array());
  for (const Question& question : questions) {
    Ordered answers = Ordered::array();
    for (const Answer& answer : question.answers) {
      answers.push_back({{"text", answer.text}, {"answer_start", answer.start}});
    }
    Ordered entry{{"id", question.id}, {"question", question.question}, {"answers", std::move(answers)}};
    if (with_impossible) entry["is_impossible"] = question.impossible;
    entries.at(static_cast<size_t>(question.context)).push_back(std::move(entry));
  }
  Ordered paragraphs = Ordered::array();
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (entries[i].empty()) continue;
    paragraphs.push_back({{"context", contexts[i]}, {"qas", std::move(entries[i])}});
  }
  Ordered article{{"title", title}, {"paragraphs", std::move(paragraphs)}};
  Ordered file{{"version", with_impossible ? "v2.0" : "1.1"}, {"data", Ordered::array()}};
  file["data"].push_back(std::move(article));
  std::string text;
  try {
    text = file.dump() + "\n";
  } catch (const Json::exception&) {
    throw DataError("{} cannot be written: a text is not UTF-8, which JSON needs", path.string());
  }
  write_file_atomically(path, text);
}

int64_t byte_of_code_point(std::string_view text, int64_t start) {
  if (start < 0) return -1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && start-- == 0) return static_cast<int64_t>(i);
  }
  return start == 0 ? static_cast<int64_t>(text.size()) : -1;
}

int64_t code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), begins_character);
}

}  // namespace syncopate::corpora
