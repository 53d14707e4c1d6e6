#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "syncopate/base/hash.h"
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

/// What decides whether examples are the same, of examples that come in pieces.
class ExamplesFingerprint {
 public:
  void add(std::span<const int32_t> words, int32_t seconds, int32_t label);
  uint64_t value() const;

 private:
  Checksum words_, examples_;
};

class MemoryExamples : public TextExamples {
 public:
  void append(const text::Encoding& encoding, int64_t label);
  /// Tokenizes; `max_length` counts the special words. Throws ConfigError when it is less than 3, those of a
  /// pair.
  void append(const corpora::TextExample& example, const text::WordPiece& tokenizer, int64_t max_length);
  void append(const MemoryExamples& others);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  Example at(int64_t id) const override;
  void read(const Example& example, std::span<int32_t> into) const override;
  std::span<const int32_t> words(const Example& example) const;
  int64_t tokens() const override { return static_cast<int64_t>(words_.size()); }
  uint64_t fingerprint() const override;

 private:
  std::vector<int32_t> words_;      ///< one example after the other
  std::vector<int64_t> starts_{0};  ///< size() + 1 offsets into words_
  std::vector<int32_t> seconds_, labels_;
};

/// Writes examples of a split, words of a vocabulary of that size, into token files that are named by
/// files_of_examples. Failures are CannotWrite.
class ExamplesWriter {
 public:
  ExamplesWriter(const std::filesystem::path& folder, const std::string& split, int64_t vocabulary);
  void append(const MemoryExamples& examples);
  nlohmann::json finish();  ///< what open_examples needs besides

 private:
  TokenFileWriter words_, examples_;
  int64_t begin_ = 0;  ///< of the next example's words
  ExamplesFingerprint fingerprint_;
};

/// The names of a split's token files.
std::vector<std::string> files_of_examples(const std::string& split);

/// The examples that were written; `files` as named, `note` as finish() gave it.
std::shared_ptr<const TextExamples> open_examples(std::span<const std::shared_ptr<const TokenFile>> files,
                                                  const nlohmann::json& note);

}  // namespace syncopate::data
