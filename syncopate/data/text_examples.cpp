#include "syncopate/data/text_examples.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/ordered_work.h"

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

void append_encoded(MemoryExamples& made, const corpora::TextExample& example,
                    const text::WordPiece& tokenizer, int64_t max_length) {
  const std::optional<std::string_view> pair =
      example.b.empty() ? std::nullopt : std::optional<std::string_view>(example.b);
  made.append(tokenizer.encode(example.a, pair, max_length), example.label);
}

void require_room_for_special_words(int64_t max_length) {
  if (max_length < 3) throw ConfigError("max_length must be 3 or more, got {}", max_length);
}

}  // namespace

void MemoryExamples::append(const text::Encoding& encoding, int64_t label) {
  words_.insert(words_.end(), encoding.ids.begin(), encoding.ids.end());
  starts_.push_back(tokens());
  seconds_.push_back(static_cast<int32_t>(std::count(encoding.types.begin(), encoding.types.end(), 1)));
  labels_.push_back(static_cast<int32_t>(label));
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

void MemoryExamples::read(const Example& example, std::span<int32_t> into) const {
  std::copy_n(words_.begin() + example.begin, into.size(), into.begin());
}

uint64_t MemoryExamples::fingerprint() const {
  return checksum_of(labels_, checksum_of(seconds_, checksum_of(starts_, checksum_of(words_))));
}

nlohmann::json MemoryExamples::write(const std::filesystem::path& folder, const std::string& split,
                                     int64_t vocabulary) const {
  const std::vector<std::string> names = files_of_examples(split);
  TokenFileWriter words(token_file(folder, names[0]), vocabulary);
  constexpr size_t kPortion = size_t{1} << 18;
  for (std::span<const int32_t> rest = words_; !rest.empty();
       rest = rest.subspan(std::min(kPortion, rest.size())))
    words.append(rest.first(std::min(kPortion, rest.size())));
  words.finish();
  TokenFileWriter examples(token_file(folder, names[1]), std::numeric_limits<int64_t>::max());
  for (int64_t id = 0; id < size(); ++id) {
    const Example example = at(id);
    const auto [low, high] = halves_of(example.begin);
    examples.append(std::array<int32_t, kNumbers>{low, high, example.seconds, example.label});
  }
  examples.append(halves_of(tokens()));
  examples.finish();
  return fingerprint();
}

std::shared_ptr<const MemoryExamples> tokenized(std::vector<corpora::TextExample> examples,
                                                const text::WordPiece& tokenizer, int64_t max_length) {
  require_room_for_special_words(max_length);
  auto all = std::make_shared<MemoryExamples>();
  for (const corpora::TextExample& example : examples) append_encoded(*all, example, tokenizer, max_length);
  return all;
}

std::shared_ptr<const MemoryExamples> tokenized_together(std::vector<corpora::TextExample> examples,
                                                         const text::WordPiece& tokenizer, int64_t max_length,
                                                         const std::function<void(int64_t done)>& progress) {
  require_room_for_special_words(max_length);
  using Texts = std::vector<corpora::TextExample>;
  constexpr size_t kTogether = 1024;
  auto all = std::make_shared<MemoryExamples>();
  OrderedWork<Texts, MemoryExamples> work(
      worthwhile_threads(),
      [&] {
        return [&](Texts& texts) {
          MemoryExamples made;
          for (const corpora::TextExample& example : texts)
            append_encoded(made, example, tokenizer, max_length);
          return made;
        };
      },
      [&](const MemoryExamples& made) {
        all->append(made);
        progress(all->size());
      });
  for (size_t from = 0; from < examples.size(); from += kTogether) {
    const auto first = examples.begin() + static_cast<std::ptrdiff_t>(from);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kTogether, examples.size() - from));
    work.add(Texts(std::make_move_iterator(first), std::make_move_iterator(first + count)));
  }
  work.finish();
  return all;
}

std::vector<std::string> files_of_examples(const std::string& split) { return {split, split + "-examples"}; }

std::shared_ptr<const TextExamples> open_examples(std::span<const std::shared_ptr<const TokenFile>> files,
                                                  const nlohmann::json& note) {
  return std::make_shared<FileExamples>(files[0], files[1], note.get<uint64_t>());
}

}  // namespace syncopate::data
