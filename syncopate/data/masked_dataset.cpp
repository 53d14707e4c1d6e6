#include "syncopate/data/masked_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/rng.h"

namespace syncopate::data {
namespace {

// Keeps masks apart from other streams drawn from the same seed.
constexpr uint64_t kMaskStream = 0x6D61736B;
constexpr int64_t kShortestLast = 8;

/// Neighbouring pieces of a block that are chosen together.
struct Word {
  int32_t begin, end;
};

}  // namespace

/// A place within a block (without [CLS]) and what the model reads there.
struct MaskedDataset::Choice {
  int32_t place;
  int32_t shown;
};

MakeAppend MaskedDataset::appender(const text::WordPiece& tokenizer) {
  return [&tokenizer]() -> AppendDocument {
    return [&tokenizer](std::string_view document, std::vector<int32_t>& into) {
      const std::vector<int32_t> pieces = tokenizer.encode(document);
      if (pieces.empty()) return;
      into.insert(into.end(), pieces.begin(), pieces.end());
      into.push_back(tokenizer.sep());
    };
  };
}

MaskedDataset::MaskedDataset(std::span<const std::string> documents, const text::WordPiece& tokenizer,
                             MaskOptions options)
    : MaskedDataset(std::make_shared<MemoryTokens>(token_stream(documents, appender(tokenizer))), tokenizer,
                    options) {}

MaskedDataset::MaskedDataset(std::shared_ptr<const Tokens> tokens, const text::WordPiece& tokenizer,
                             MaskOptions options)
    : options_(options),
      tokens_(std::move(tokens)),
      size_(std::max<int64_t>(0, tokens_->size() - 1)),  // [SEP] ends every block anyway
      special_(static_cast<size_t>(tokenizer.size()), 0),
      inner_(static_cast<size_t>(tokenizer.size()), 0),
      pad_(tokenizer.pad()),
      cls_(tokenizer.cls()),
      sep_(tokenizer.sep()),
      mask_(tokenizer.mask()) {
  if (!(options.rate > 0 && options.rate < 1))
    throw ConfigError("mask_rate must be above 0 and below 1, got {}", options.rate);
  if (options.max_length < 3) throw ConfigError("max_length must be 3 or more, got {}", options.max_length);
  for (const int32_t id : {pad_, cls_, sep_, mask_, tokenizer.unk()}) special_[static_cast<size_t>(id)] = 1;
  for (size_t id = 0; id < special_.size(); ++id) {
    const std::string& word = tokenizer.words()[id];
    inner_[id] = word.size() > 2 && word.starts_with("##");
    if (special_[id] == 0) ordinary_.push_back(static_cast<int32_t>(id));
  }
  const int64_t room = options.max_length - 2;
  if (size_ > room && size_ % room < kShortestLast) size_ -= size_ % room;
  blocks_ = (size_ + room - 1) / room;
}

std::vector<MaskedDataset::Choice> MaskedDataset::choose(std::span<const int32_t> pieces, int64_t id,
                                                         uint64_t draw) const {
  std::vector<Word> words;
  int64_t maskable = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(pieces.size()); ++i) {
    const auto word = static_cast<size_t>(pieces[static_cast<size_t>(i)]);
    if (special_[word] != 0) continue;
    ++maskable;
    const bool joins = options_.whole_words && inner_[word] != 0 && !words.empty() && words.back().end == i;
    if (joins) {
      ++words.back().end;
    } else {
      words.push_back({i, i + 1});
    }
  }
  const int64_t wanted = std::max<int64_t>(1, std::llround(options_.rate * static_cast<double>(maskable)));
  Rng rng(mix_key(options_.seed, kMaskStream, draw, id));
  std::vector<Choice> choices;
  for (size_t taken = 0; taken < words.size() && static_cast<int64_t>(choices.size()) < wanted; ++taken) {
    std::swap(words[taken], words[taken + rng.below(words.size() - taken)]);
    for (int32_t place = words[taken].begin; place < words[taken].end; ++place) {
      const double fate = rng.uniform();
      const int32_t shown = fate < 0.8   ? mask_
                            : fate < 0.9 ? ordinary_[rng.below(ordinary_.size())]
                                         : pieces[static_cast<size_t>(place)];
      choices.push_back({place, shown});
    }
  }
  std::sort(choices.begin(), choices.end(),
            [](const Choice& a, const Choice& b) { return a.place < b.place; });
  return choices;
}

tensor::Batch MaskedDataset::collate(std::span<const int64_t> ids, uint64_t draw) const {
  const int64_t room = options_.max_length - 2;
  tensor::Batch batch;
  const int64_t longest = start_texts(
      ids, [&](int64_t id) { return block_size(size_, room, id) + 2; }, batch);
  const auto rows = static_cast<int64_t>(ids.size());
  const auto options = at::TensorOptions().dtype(at::kLong);
  at::Tensor input_ids = at::empty({rows, longest}, options);
  at::Tensor mask = at::empty({rows, longest}, options);
  std::vector<int64_t> masked, labels;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t id = ids[static_cast<size_t>(row)];
    const std::vector<int32_t> pieces = block_of(*tokens_, size_, room, id);
    int64_t* input_row = input_ids.data_ptr<int64_t>() + row * longest;
    int64_t* mask_row = mask.data_ptr<int64_t>() + row * longest;
    const auto padding = longest - static_cast<int64_t>(pieces.size()) - 2;
    input_row[0] = cls_;
    int64_t* end = std::copy(pieces.begin(), pieces.end(), input_row + 1);
    *end++ = sep_;
    std::fill_n(end, padding, int64_t{pad_});
    std::fill_n(std::fill_n(mask_row, pieces.size() + 2, int64_t{1}), padding, int64_t{0});
    for (const Choice& choice : choose(pieces, id, draw)) {
      const int64_t column = choice.place + 1;  // [CLS] comes first
      labels.push_back(input_row[column]);
      masked.push_back(row * longest + column);
      input_row[column] = choice.shown;
    }
  }
  batch.fields = {{"input_ids", input_ids},
                  {"token_type_ids", at::zeros({rows, longest}, options)},
                  {"attention_mask", mask},
                  {"masked", at::tensor(masked, options)},
                  {"labels", at::tensor(labels, options)}};
  return batch;
}

uint64_t MaskedDataset::fingerprint() const {
  return checksum_of(std::vector<int64_t>{options_.max_length, blocks_}, tokens_->fingerprint(size_));
}

}  // namespace syncopate::data
