#include "syncopate/corpora/wordnet/definition_qa.h"

#include <algorithm>
#include <set>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"
#include "syncopate/corpora/wordnet/nouns.h"

namespace syncopate::corpora {
namespace {

constexpr size_t kQuestions = 4;  // of a paragraph
constexpr size_t kTestParagraphs = 500;
constexpr size_t kTrainParagraphs = 5000;
constexpr int64_t kFewestWords = 60;
constexpr int64_t kMostWords = 120;

int64_t words_in(std::string_view text) { return 1 + std::count(text.begin(), text.end(), ' '); }

/// "A dog is a member of the genus Canis.": definitions that make such a sentence, and are not so short that
/// another noun's may be the same.
bool makes_a_sentence(const Noun& noun) {
  const std::string& text = noun.definition;
  const bool phrase = text.starts_with("a ") || text.starts_with("an ") || text.starts_with("the ") ||
                      text.starts_with("any ") || text.starts_with("someone ") ||
                      text.starts_with("something ");
  const int64_t words = words_in(text);
  return phrase && words >= 5 && words <= 20 && text.find_first_of("\";") == std::string::npos;
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

/// Where a sentence of the paragraph has its noun and its definition, in bytes.
struct Sentence {
  const Noun* noun = nullptr;
  size_t word_at = 0;
  size_t definition_at = 0;
};

Question ask(const Sentence& sentence, bool for_the_word, const std::string& paragraph, int64_t number,
             size_t index) {
  const Noun& noun = *sentence.noun;
  Question question;
  question.id = fmt::format("definition-{}-{}", number, index);
  question.context = number;
  const size_t at = for_the_word ? sentence.word_at : sentence.definition_at;
  const std::string& answer = for_the_word ? noun.words.front() : noun.definition;
  question.question = for_the_word ? fmt::format("What is {}?", noun.definition)
                                   : fmt::format("What is {}?", with_article(noun.words.front()));
  // The paragraph's own bytes: a word at the start of a sentence is capitalized.
  question.answers.push_back(
      {paragraph.substr(at, answer.size()), code_points(std::string_view(paragraph).substr(0, at))});
  return question;
}

/// Takes nouns from `next` on until there are words enough; false when they have run out.
bool write_paragraph(const std::vector<const Noun*>& nouns, size_t& next, std::string& paragraph,
                     std::vector<Sentence>& sentences) {
  std::set<std::string_view> used;
  int64_t words = 0;
  while (words < kFewestWords || sentences.size() < kQuestions) {
    if (next == nouns.size()) return false;
    const Noun& noun = *nouns[next++];
    const std::string& word = noun.words.front();
    if (!used.insert(word).second) continue;  // two senses would make a riddle
    const std::string subject = capitalized(with_article(word));
    const int64_t more = words_in(subject) + 1 + words_in(noun.definition);
    if (words + more > kMostWords) continue;
    if (!paragraph.empty()) paragraph += ' ';
    const size_t begin = paragraph.size();
    paragraph += subject + " is " + noun.definition + ".";
    sentences.push_back({&noun, begin + subject.size() - word.size(), begin + subject.size() + 4});
    words += more;
  }
  return true;
}

}  // namespace

SquadTask load_definition_qa(const std::filesystem::path& path, Purpose purpose) {
  const std::vector<Noun> nouns = read_nouns(path);
  std::vector<const Noun*> usable;
  for (const Noun& noun : nouns) {
    if (makes_a_sentence(noun)) usable.push_back(&noun);
  }
  std::stable_sort(usable.begin(), usable.end(),
                   [](const Noun* a, const Noun* b) { return a->key < b->key; });
  SquadTask task{.name = "definition_qa", .contexts = {}, .train = {}, .test = {}, .notes = {}};
  std::vector<std::vector<Question>> asked;  // by paragraph
  for (size_t next = 0; asked.size() < kTestParagraphs + kTrainParagraphs;) {
    std::string paragraph;
    std::vector<Sentence> sentences;
    if (!write_paragraph(usable, next, paragraph, sentences)) break;
    const auto number = static_cast<int64_t>(asked.size());
    const auto order = permutation(static_cast<int64_t>(sentences.size()), stable_hash(paragraph));
    auto& questions = asked.emplace_back();
    for (size_t i = 0; i < kQuestions; ++i) {
      questions.push_back(ask(sentences[static_cast<size_t>(order[i])], i % 2 == 0, paragraph, number, i));
    }
    task.contexts.push_back(std::move(paragraph));
  }
  if (asked.size() < 2) {
    throw DataError("{} has too few definitions to make paragraphs of; give all of WordNet's data.noun",
                    path.string());
  }
  const size_t tests = std::clamp<size_t>(asked.size() / 10, 1, kTestParagraphs);
  for (size_t i = 0; i < asked.size(); ++i) {
    auto& split = i < tests ? task.test : task.train;
    split.insert(split.end(), asked[i].begin(), asked[i].end());
  }
  if (purpose != Purpose::kTrain) task.train.clear();
  return task;
}

}  // namespace syncopate::corpora
