#include "syncopate/data/squad_dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"

namespace syncopate::data {
namespace {

constexpr int64_t kSpecialWords = 3;

/// The bytes of the first answer; empty at 0 where there is none in its place.
text::ByteRange answer_bytes(const corpora::Question& question, std::string_view context) {
  if (question.impossible || question.answers.empty()) return {};
  const corpora::Answer& answer = question.answers.front();
  const int64_t begin = corpora::byte_of_code_point(context, answer.start);
  if (begin < 0 || !context.substr(static_cast<size_t>(begin)).starts_with(answer.text)) return {};
  return {begin, begin + static_cast<int64_t>(answer.text.size())};
}

/// The answer's first and last piece among those of a window, numbered from 0; {-1, -1} when a part of it
/// lies outside. An answer may begin or end within a piece, which then belongs to it.
std::pair<int64_t, int64_t> answer_pieces(std::span<const text::Piece> window, text::ByteRange answer) {
  constexpr std::pair<int64_t, int64_t> kNone{-1, -1};
  if (window.empty() || answer.begin == answer.end) return kNone;
  if (window.front().begin > answer.begin || window.back().end < answer.end) return kNone;
  const auto behind = std::partition_point(
      window.begin(), window.end(), [&](const text::Piece& piece) { return piece.begin <= answer.begin; });
  const auto last = std::partition_point(window.begin(), window.end(),
                                         [&](const text::Piece& piece) { return piece.end < answer.end; });
  const int64_t first = behind - window.begin() - 1;
  // An answer that is all dropped characters lies between two pieces.
  return {first, std::max<int64_t>(first, last - window.begin())};
}

}  // namespace

SquadDataset::SquadDataset(std::span<const corpora::Question> questions,
                           std::span<const std::string> contexts, const text::WordPiece& tokenizer,
                           const WindowOptions& options)
    : pad_(tokenizer.pad()), cls_(tokenizer.cls()), sep_(tokenizer.sep()) {
  if (options.stride < 0 || options.max_question < 1 ||
      options.max_length - kSpecialWords - options.max_question <= options.stride) {
    throw ConfigError(
        "with questions of up to {} pieces and a stride of {} the windows cannot advance: max_length must be "
        "{} or more, got {}",
        options.max_question, options.stride,
        kSpecialWords + options.max_question + std::max<int64_t>(options.stride, 0) + 1, options.max_length);
  }
  std::vector<char> used(contexts.size(), 0);  // a task's contexts serve both its splits
  for (const corpora::Question& question : questions) used.at(static_cast<size_t>(question.context)) = 1;
  contexts_.resize(contexts.size());
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (used[i] != 0) contexts_[i] = {contexts[i], tokenizer.encode_with_offsets(contexts[i])};
  }
  questions_.reserve(questions.size());
  for (const corpora::Question& question : questions) {
    const auto number = static_cast<int64_t>(questions_.size());
    std::vector<int32_t> ids = tokenizer.encode(question.question);
    if (static_cast<int64_t>(ids.size()) > options.max_question)
      ids.resize(static_cast<size_t>(options.max_question));
    const auto asked = static_cast<int64_t>(ids.size());
    const Context& read = contexts_[static_cast<size_t>(question.context)];
    const text::ByteRange answer = answer_bytes(question, read.text);
    questions_.push_back({question.context, size(), std::move(ids)});
    const int64_t room = options.max_length - kSpecialWords - asked;
    const auto pieces = static_cast<int64_t>(read.pieces.size());
    for (int64_t begin = 0;; begin += room - options.stride) {
      const int64_t count = std::min(room, pieces - begin);
      const std::span<const text::Piece> window(read.pieces.data() + begin, static_cast<size_t>(count));
      const auto [first, last] = answer_pieces(window, answer);
      const int64_t shift = first < 0 ? 1 : asked + 2;  // -1 becomes 0, [CLS]
      features_.push_back({number, begin, count, first + shift, last + shift});
      if (begin + count >= pieces) break;
    }
  }
}

const SquadDataset::Feature& SquadDataset::at(int64_t feature) const {
  check(feature >= 0 && feature < size(), "a feature's number is within its data set");
  return features_[static_cast<size_t>(feature)];
}

const SquadDataset::Context& SquadDataset::context(const Feature& feature) const {
  return contexts_[static_cast<size_t>(questions_[static_cast<size_t>(feature.question)].context)];
}

std::pair<int64_t, int64_t> SquadDataset::features_of(int64_t question) const {
  check(question >= 0 && question < questions(), "a question's number is within its data set");
  const auto number = static_cast<size_t>(question);
  return {questions_[number].first_feature,
          number + 1 < questions_.size() ? questions_[number + 1].first_feature : size()};
}

std::pair<int64_t, int64_t> SquadDataset::window(int64_t feature) const {
  const Feature& found = at(feature);
  const auto first = static_cast<int64_t>(questions_[static_cast<size_t>(found.question)].ids.size()) + 2;
  return {first, first + found.count};
}

int64_t SquadDataset::length(int64_t feature) const { return window(feature).second + 1; }

text::ByteRange SquadDataset::place(int64_t feature, int64_t position) const {
  const auto [first, behind] = window(feature);
  check(position >= first && position < behind, "only positions of the window have a place in the context");
  const Feature& found = at(feature);
  const text::Piece& piece = context(found).pieces[static_cast<size_t>(found.begin + position - first)];
  return {piece.begin, piece.end};
}

std::string_view SquadDataset::context_of(int64_t feature) const { return context(at(feature)).text; }

tensor::Batch SquadDataset::collate(std::span<const int64_t> ids, uint64_t) const {
  tensor::Batch batch;
  const int64_t longest = start_texts(
      ids, [this](int64_t id) { return length(id); }, batch);
  const auto rows = static_cast<int64_t>(ids.size());
  const auto options = at::TensorOptions().dtype(at::kLong);
  at::Tensor input_ids = at::full({rows, longest}, pad_, options);
  at::Tensor types = at::zeros({rows, longest}, options);
  at::Tensor mask = at::zeros({rows, longest}, options);
  at::Tensor starts = at::empty({rows}, options);
  at::Tensor ends = at::empty({rows}, options);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t id = ids[static_cast<size_t>(row)];
    const Feature& feature = at(id);
    const auto& question = questions_[static_cast<size_t>(feature.question)].ids;
    const auto pieces = context(feature).pieces.begin() + feature.begin;
    int64_t* input = input_ids.data_ptr<int64_t>() + row * longest;
    *input++ = cls_;
    input = std::copy(question.begin(), question.end(), input);
    *input++ = sep_;
    input = std::transform(pieces, pieces + feature.count, input,
                           [](const text::Piece& piece) { return piece.id; });
    *input = sep_;
    const auto [first, behind] = window(id);
    std::fill_n(types.data_ptr<int64_t>() + row * longest + first, behind + 1 - first, int64_t{1});
    std::fill_n(mask.data_ptr<int64_t>() + row * longest, behind + 1, int64_t{1});
    starts.data_ptr<int64_t>()[row] = feature.start;
    ends.data_ptr<int64_t>()[row] = feature.end;
  }
  batch.fields = {{"input_ids", input_ids},
                  {"token_type_ids", types},
                  {"attention_mask", mask},
                  {"starts", starts},
                  {"ends", ends}};
  return batch;
}

uint64_t SquadDataset::fingerprint() const {
  uint64_t sum = 0;
  for (const AskedQuestion& question : questions_) {
    sum = checksum_of(question.ids, sum);
    sum = checksum_of(std::vector<int64_t>{question.context, question.first_feature}, sum);
  }
  for (const Context& context : contexts_) sum = checksum(context.text, sum);
  return checksum_of(features_, sum);
}

}  // namespace syncopate::data
