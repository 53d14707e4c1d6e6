#include "syncopate/tasks/language.h"

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"

namespace syncopate::tasks {

corpora::CorpusSource corpus_of(const spec::RunSpec& spec) {
  return {.path = spec.task.data, .documents = spec.task.documents, .text = spec.task.text};
}

std::vector<std::string_view> views_of(const std::vector<std::string>& documents) {
  return {documents.begin(), documents.end()};
}

std::vector<std::string> validation_of(corpora::Corpus& corpus, const spec::RunSpec& spec) {
  const spec::RunSpec::Validation validation = spec.validation();
  if (!validation.path.empty()) {
    corpora::CorpusSource source = corpus_of(spec);
    source.path = validation.path;
    return corpora::load_corpus(source, corpora::Purpose::kEvaluate).test;
  }
  if (!validation.on()) return {};
  std::string unit;
  std::vector<std::string> held = corpora::hold_out_documents(corpus.train, validation.share, unit);
  corpus.notes.push_back(validation_note(held.size(), held.size() + corpus.train.size(), unit));
  return held;
}

std::vector<std::string> prompts_of(const spec::ScoreSpec& spec) {
  if (!spec.prompts.empty()) return spec.prompts;
  if (spec.data.empty()) {
    throw ConfigError(
        "predict --task {} needs a text: give one with --prompt, or a file of lines with --data", spec.task);
  }
  std::vector<std::string> texts;
  const std::string text = read_file(spec.data, "text");
  for (std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) texts.emplace_back(trim(line));
  }
  if (texts.empty()) throw DataError("{} holds no text; give one text a line", spec.data);
  return texts;
}

}  // namespace syncopate::tasks
