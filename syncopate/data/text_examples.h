#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "syncopate/corpora/text_task.h"
#include "syncopate/data/token_file.h"
#include "syncopate/text/wordpiece.h"

namespace syncopate::data {

/// Classification examples as word numbers, the special words among them: in memory, or in files that all
/// workers of a host share. Immutable: any number of threads may read at once.
class TextExamples {
 public:
  virtual ~TextExamples() = default;

  struct Example {
    int64_t begin = 0;    ///< its first word, of all examples' words
    int64_t length = 0;   ///< words
    int32_t seconds = 0;  ///< how many of them belong to its second text: the last ones
    int32_t label = 0;
  };
  virtual int64_t size() const = 0;
  virtual Example at(int64_t id) const = 0;
  /// Copies an example's words.
  virtual void read(const Example& example, std::span<int32_t> into) const = 0;
  virtual int64_t tokens() const = 0;        ///< of all examples
  virtual uint64_t fingerprint() const = 0;  ///< the same in memory and in files
};

class MemoryExamples : public TextExamples {
 public:
  void append(const text::Encoding& encoding, int64_t label);
  void append(const MemoryExamples& others);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  Example at(int64_t id) const override;
  void read(const Example& example, std::span<int32_t> into) const override;
  int64_t tokens() const override { return static_cast<int64_t>(words_.size()); }
  uint64_t fingerprint() const override;

  /// Writes token files of a split, named by files_of_examples, for words of a vocabulary of that size; what
  /// open_examples needs besides. Failures are std::system_error.
  nlohmann::json write(const std::filesystem::path& folder, const std::string& split,
                       int64_t vocabulary) const;

 private:
  std::vector<int32_t> words_;      ///< one example after the other
  std::vector<int64_t> starts_{0};  ///< size() + 1 offsets into words_
  std::vector<int32_t> seconds_, labels_;
};

/// The examples by a tokenizer, cut to `max_length` with their special words.
std::shared_ptr<const MemoryExamples> tokenized(std::vector<corpora::TextExample> examples,
                                                const text::WordPiece& tokenizer, int64_t max_length);
/// The same by all processors; texts are gone as soon as they are done. `progress` is told how many.
std::shared_ptr<const MemoryExamples> tokenized_together(std::vector<corpora::TextExample> examples,
                                                         const text::WordPiece& tokenizer, int64_t max_length,
                                                         const std::function<void(int64_t done)>& progress);

/// The names of a split's token files.
std::vector<std::string> files_of_examples(const std::string& split);

/// The examples that were written; `files` as named, `note` as write() gave it.
std::shared_ptr<const TextExamples> open_examples(std::span<const std::shared_ptr<const TokenFile>> files,
                                                  const nlohmann::json& note);

}  // namespace syncopate::data
