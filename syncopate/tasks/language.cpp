#include "syncopate/tasks/language.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/data/subset.h"
#include "syncopate/tasks/task_files.h"

namespace syncopate::tasks {

corpora::CorpusSource corpus_of(const spec::RunSpec& spec) {
  return {.path = spec.task.data,
          .documents = spec.task.documents,
          .text = spec.task.text,
          .form = file_form(spec.task.columns())};
}

corpora::CorpusSource corpus_of(const spec::ScoreSpec& spec) {
  return {.path = spec.data,
          .documents = spec.documents,
          .text = spec.columns.text,
          .form = file_form(spec.columns)};
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

std::shared_ptr<const data::Dataset> limited_validation(std::shared_ptr<const data::Dataset> whole,
                                                        const spec::RunSpec& spec) {
  const double blocks = spec.validation().share * static_cast<double>(spec.task.limit);
  if (blocks == 0 || blocks >= static_cast<double>(whole->size())) return whole;
  std::vector<int64_t> first(static_cast<size_t>(std::max(1.0, std::round(blocks))));
  std::iota(first.begin(), first.end(), int64_t{0});
  return std::make_shared<data::Subset>(std::move(whole), first);
}

std::vector<std::string> prompts_of(const spec::ScoreSpec& spec, std::vector<std::string>& notes) {
  if (!spec.prompts.empty()) return spec.prompts;
  if (spec.data.empty()) {
    throw ConfigError(
        "predict --task {} needs a text: give one with --prompt, or a file of lines with --data", spec.task);
  }
  std::vector<std::string> texts;
  const corpora::TextFile file = corpora::read_text_file(spec.data, "text", spec.columns.encoding);
  notes.insert(notes.end(), file.notes.begin(), file.notes.end());
  for (std::string_view line : split(file.text, '\n')) {
    if (!trim(line).empty()) texts.emplace_back(trim(line));
  }
  if (texts.empty()) throw DataError("{} holds no text; give one text a line", spec.data);
  return texts;
}

}  // namespace syncopate::tasks
