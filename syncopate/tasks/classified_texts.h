#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/corpora/task.h"
#include "syncopate/data/kept_folder.h"
#include "syncopate/data/text_examples.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/tasks/chosen_texts.h"
#include "syncopate/text/wordpiece.h"

namespace syncopate::tasks {

/// What a classification run trains and is scored on.
struct ClassifiedExamples {
  std::vector<std::string> labels;                                    ///< by number
  std::vector<corpora::TestPart> parts;                               ///< of the test split
  std::vector<std::string> notes;                                     ///< for the user
  std::shared_ptr<const data::TextExamples> train, test, validation;  ///< no validation: off
};

/// The texts and classes that a run learns from as tokens: in this process's memory or,
/// by task.cache, in files that the workers of a host share and the next run finds. Both give the same
/// examples. Where the files cannot be used, a note says so and memory is used.
class ClassifiedTexts {
 public:
  /// Throws as load_task does where there are no files. `speaks`: tells the user that it waits for another
  /// process.
  ClassifiedTexts(const spec::RunSpec& spec, bool speaks);

  /// One learned from the training texts, a word a line. Where it is not `wanted`, the result may be empty.
  std::string vocabulary(bool wanted);

  /// Call it last.
  ClassifiedExamples examples(const text::WordPiece& tokenizer, int64_t max_length);

 private:
  const ChosenTexts& chosen();
  void forget();  ///< what was chosen, of files as they were
  std::string learn();
  void use_memory(const std::string& why);
  nlohmann::json choices() const;
  size_t threads() const;  ///< in memory, every worker tokenizes at the same time
  ClassifiedExamples kept(const text::WordPiece& tokenizer, int64_t max_length);
  ClassifiedExamples in_memory(const text::WordPiece& tokenizer, int64_t max_length);

  const spec::RunSpec& spec_;
  std::unique_ptr<data::KeptFolder> kept_;  ///< none: in memory
  std::optional<ChosenTexts> chosen_;       ///< once they are needed
  std::vector<std::string> notes_;          ///< why it is in memory
};

}  // namespace syncopate::tasks
