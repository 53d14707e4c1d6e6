#include "syncopate/tasks/language.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/documents.h"
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

namespace {

std::vector<uint64_t> keys_of(const std::vector<std::string>& documents) {
  std::vector<uint64_t> keys;
  for (const std::string& document : documents) keys.push_back(corpora::validation_key(document));
  return keys;
}

}  // namespace

std::vector<std::string> validation_of(corpora::Corpus& corpus, const spec::RunSpec& spec) {
  const spec::RunSpec::Validation validation = spec.validation();
  if (!validation.path.empty()) {
    corpora::CorpusSource source = corpus_of(spec);
    source.path = validation.path;
    corpora::Corpus loaded = corpora::load_corpus(source, corpora::Purpose::kEvaluate);
    corpus.notes.insert(corpus.notes.end(), loaded.notes.begin(), loaded.notes.end());
    require_other_than_test(keys_of(loaded.test), keys_of(corpus.test));
    return std::move(loaded.test);
  }
  if (!validation.on()) return {};
  corpora::HeldOutDocuments held = corpora::hold_out_documents(corpus.train, validation.share);
  corpus.notes.push_back(validation_note(held.taken, held.total, held.unit));
  return std::move(held.documents);
}

std::shared_ptr<const data::Dataset> limited_validation(std::shared_ptr<const data::Dataset> whole,
                                                        const spec::RunSpec& spec) {
  const double blocks = spec.validation().share * static_cast<double>(spec.task.limit);
  if (blocks == 0 || blocks >= static_cast<double>(whole->size())) return whole;
  const std::vector<int64_t> chosen =
      sampled_examples(whole->size(), std::max<int64_t>(1, std::llround(blocks)));
  return std::make_shared<data::Subset>(std::move(whole), chosen);
}

std::vector<std::string> prompts_of(const spec::ScoreSpec& spec, std::vector<std::string>& notes) {
  if (!spec.prompts.empty()) return spec.prompts;
  if (spec.data.empty()) {
    throw ConfigError(
        "predict --task {} needs a text: give one with --prompt, or a file of lines with --data", spec.task);
  }
  if (corpora::is_table(spec.data)) {
    corpora::Documents rows =
        corpora::read_documents(spec.data, spec.documents, spec.columns.text, file_form(spec.columns));
    notes.insert(notes.end(), rows.notes.begin(), rows.notes.end());
    return std::move(rows.texts);
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
