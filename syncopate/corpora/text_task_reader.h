#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// The examples of a text task, which are read again and again. Where they are in tables, they are not kept.
class TextTaskReader {
 public:
  virtual ~TextTaskReader() = default;

  /// Takes an example of the training or the test split, which lives for the call alone.
  using UseExample = std::function<void(Split split, const TextExample& example)>;
  /// Gives `use` all examples, or those of one split `only`; a split's in their order. Throws DataError.
  virtual void read(const UseExample& use, std::optional<Split> only = {}) const = 0;

  /// What the first reading has found, as in TextTask.
  struct Found {
    std::vector<std::string> labels;
    std::vector<TestPart> parts;
    std::vector<std::string> notes, training_notes;
    int64_t train = 0, test = 0;  ///< examples
    int64_t letters = 0;          ///< bytes of all their texts
  };
  const Found& found() const { return found_; }

 protected:
  Found found_;
};

/// The reader of a task that is in memory.
std::unique_ptr<const TextTaskReader> reader_of(TextTask task);

/// All that a reader gives, in memory.
TextTask read_whole(const TextTaskReader& reader, std::string name);

}  // namespace syncopate::corpora
