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
