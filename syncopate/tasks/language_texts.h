#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/corpus.h"
#include "syncopate/data/token_cache.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/text/word_counts.h"

namespace syncopate::tasks {

/// The documents that a run learns language from, as words to learn a vocabulary from and as tokens: in this
/// process's memory or, by task.cache, in files that the workers of a host share and the next run finds. Both
/// give the same tokens. Where the files cannot be used, a note says so and memory is used.
class LanguageTexts {
 public:
  /// Throws DataError where there are no files. `speaks`: tells the user that it waits for another process.
  LanguageTexts(const spec::RunSpec& spec, bool speaks);

  /// How a vocabulary is learned from the training documents.
  struct Learning {
    std::string what;  ///< all that decides it besides the documents
    std::function<void(std::string_view document, text::WordCounts& counts)> count;
    std::function<std::string(const text::WordCounts& counts)> learn;
  };
  /// What it learned. Where it is not `wanted`, the result may be empty.
  std::string vocabulary(const Learning& learning, bool wanted);

  /// The splits by a tokenizer of `size` words, which `what` describes whole. `validation` is none where that
  /// split is off.
  data::CachedTokens tokens(const std::string& what, int64_t size, const data::MakeAppend& make_append);

 private:
  void use_memory(const std::string& why);
  void load();

  const spec::RunSpec& spec_;
  std::unique_ptr<data::TokenCache> cache_;  ///< none: in memory
  std::optional<corpora::Corpus> corpus_;    ///< in memory, once it is needed
  std::vector<std::string> validation_;
  std::vector<std::string> notes_;  ///< why it is in memory
};

}  // namespace syncopate::tasks
