#include "syncopate/data/text_examples.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "syncopate/base/error.h"

namespace syncopate::data {
namespace {

/// What a file holds of each example: where its words begin, in two halves; `seconds`; its label. Behind the
/// last stands where the words end.
constexpr size_t kNumbers = 4;

std::array<int32_t, 2> halves_of(int64_t number) {
  return {static_cast<int32_t>(static_cast<uint32_t>(number)), static_cast<int32_t>(number >> 32)};
}

int64_t whole_of(int32_t low, int32_t high) {
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 |
                              static_cast<uint32_t>(low));
}

class FileExamples : public TextExamples {
 public:
  FileExamples(std::shared_ptr<const TokenFile> words, std::shared_ptr<const TokenFile> examples,
               uint64_t fingerprint)
      : words_(std::move(words)), examples_(std::move(examples)), fingerprint_(fingerprint) {}

  int64_t size() const override { return examples_->size() / static_cast<int64_t>(kNumbers); }
  Example at(int64_t id) const override {
    std::array<int32_t, kNumbers + 2> numbers{};
    examples_->read(id * static_cast<int64_t>(kNumbers), numbers);
    const int64_t begin = whole_of(numbers[0], numbers[1]), end = whole_of(numbers[4], numbers[5]);
    return {.begin = begin, .length = end - begin, .seconds = numbers[2], .label = numbers[3]};
  }
  void read(const Example& example, std::span<int32_t> into) const override {
    words_->read(example.begin, into);
  }
  int64_t tokens() const override { return words_->size(); }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  const std::shared_ptr<const TokenFile> words_, examples_;
  const uint64_t fingerprint_;
};

}  // namespace

void MemoryExamples::append(const text::Encoding& encoding, int64_t label) {
  words_.insert(words_.end(), encoding.ids.begin(), encoding.ids.end());
  starts_.push_back(tokens());
  seconds_.push_back(static_cast<int32_t>(std::count(encoding.types.begin(), encoding.types.end(), 1)));
  labels_.push_back(static_cast<int32_t>(label));
}

void MemoryExamples::append(const corpora::TextExample& example, const text::WordPiece& tokenizer,
                            int64_t max_length) {
  if (max_length < 3) throw ConfigError("max_length must be 3 or more, got {}", max_length);
  const std::optional<std::string_view> pair =
      example.b.empty() ? std::nullopt : std::optional<std::string_view>(example.b);
  append(tokenizer.encode(example.a, pair, max_length), example.label);
}

void MemoryExamples::append(const MemoryExamples& others) {
  const int64_t before = tokens();
  words_.insert(words_.end(), others.words_.begin(), others.words_.end());
  seconds_.insert(seconds_.end(), others.seconds_.begin(), others.seconds_.end());
  labels_.insert(labels_.end(), others.labels_.begin(), others.labels_.end());
  std::transform(others.starts_.begin() + 1, others.starts_.end(), std::back_inserter(starts_),
                 [before](int64_t start) { return before + start; });
}

TextExamples::Example MemoryExamples::at(int64_t id) const {
  const auto i = static_cast<size_t>(id);
  return {.begin = starts_[i],
          .length = starts_[i + 1] - starts_[i],
          .seconds = seconds_[i],
          .label = labels_[i]};
}

std::span<const int32_t> MemoryExamples::words(const Example& example) const {
  return std::span(words_).subspan(static_cast<size_t>(example.begin), static_cast<size_t>(example.length));
}

void MemoryExamples::read(const Example& example, std::span<int32_t> into) const {
  std::copy_n(words(example).begin(), into.size(), into.begin());
}

uint64_t MemoryExamples::fingerprint() const {
  ExamplesFingerprint all;
  for (int64_t id = 0; id < size(); ++id) {
    const Example example = at(id);
    all.add(words(example), example.seconds, example.label);
  }
  return all.value();
}

void ExamplesFingerprint::add(std::span<const int32_t> words, int32_t seconds, int32_t label) {
  const auto bytes = [](std::span<const int32_t> numbers) {
    return std::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  };
  words_.add(bytes(words));
  examples_.add(bytes(std::array{static_cast<int32_t>(words.size()), seconds, label}));
}

uint64_t ExamplesFingerprint::value() const {
  return checksum_of(std::vector<uint64_t>{words_.value(), examples_.value()});
}

ExamplesWriter::ExamplesWriter(const std::filesystem::path& folder, const std::string& split,
                               int64_t vocabulary)
    : words_(token_file(folder, files_of_examples(split)[0]), vocabulary),
      examples_(token_file(folder, files_of_examples(split)[1]), std::numeric_limits<int64_t>::max()) {}

void ExamplesWriter::append(const MemoryExamples& examples) {
  for (int64_t id = 0; id < examples.size(); ++id) {
    const TextExamples::Example example = examples.at(id);
    const std::span<const int32_t> words = examples.words(example);
    const auto [low, high] = halves_of(begin_);
    words_.append(words);
    examples_.append(std::array<int32_t, kNumbers>{low, high, example.seconds, example.label});
    fingerprint_.add(words, example.seconds, example.label);
    begin_ += example.length;
  }
}

nlohmann::json ExamplesWriter::finish() {
  examples_.append(halves_of(begin_));
  words_.finish();
  examples_.finish();
  return fingerprint_.value();
}

std::vector<std::string> files_of_examples(const std::string& split) { return {split, split + "-examples"}; }

std::shared_ptr<const TextExamples> open_examples(std::span<const std::shared_ptr<const TokenFile>> files,
                                                  const nlohmann::json& note) {
  return std::make_shared<FileExamples>(files[0], files[1], note.get<uint64_t>());
}

}  // namespace syncopate::data
