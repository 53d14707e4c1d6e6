#include "syncopate/run/language.h"

#include <algorithm>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/text.h"
#include "syncopate/data/subset.h"

namespace syncopate::run {

data::CorpusSource corpus_of(const RunSpec& spec) {
  return {.path = spec.task.data, .documents = spec.task.documents, .text = spec.task.text};
}

std::vector<std::string_view> views_of(const std::vector<std::string>& documents) {
  return {documents.begin(), documents.end()};
}

std::shared_ptr<const data::Dataset> limited(std::shared_ptr<const data::Dataset> blocks,
                                             const RunSpec& spec) {
  const int64_t size = blocks->size(), limit = spec.task.limit;
  if (limit == 0 || limit >= size) return blocks;
  return std::make_shared<data::Subset>(blocks, chosen_examples(size, limit, spec.train.seed));
}

std::shared_ptr<const data::Dataset> first_of(std::shared_ptr<const data::Dataset> blocks,
                                              const RunSpec& spec) {
  if (spec.task.test_limit == 0 || spec.task.test_limit >= blocks->size()) return blocks;
  std::vector<int64_t> first(static_cast<size_t>(spec.task.test_limit));
  std::iota(first.begin(), first.end(), int64_t{0});
  return std::make_shared<data::Subset>(blocks, first);
}

std::vector<std::string> prompts_of(const ScoreSpec& spec) {
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

int64_t scored_length(const ScoreSpec& spec, int64_t positions) {
  const int64_t length = spec.max_length > 0
                             ? spec.max_length
                             : trained_length(spec.model, family_of(spec.task).max_length, positions);
  require_length_fits(length, positions, spec.model);
  return length;
}

}  // namespace syncopate::run
