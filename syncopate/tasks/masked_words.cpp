// mlm: documents, some of whose words are masked and asked for.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/corpora/corpus.h"
#include "syncopate/data/masked_dataset.h"
#include "syncopate/tasks/language.h"
#include "syncopate/tasks/language_texts.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"
#include "syncopate/tasks/wordpiece_start.h"
#include "syncopate/text/vocabulary.h"

namespace syncopate::tasks {
namespace {

/// The likeliest words for each [MASK] of a text.
std::string fill(nn::BertMaskedLm& model, const text::WordPiece& tokenizer, const std::string& text,
                 int64_t max_length, int64_t best) {
  const text::Encoding encoding = tokenizer.encode(text, std::nullopt, max_length);
  std::vector<int64_t> ids(encoding.ids.begin(), encoding.ids.end()), masked;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == tokenizer.mask()) masked.push_back(static_cast<int64_t>(i));
  }
  if (masked.empty()) {
    throw DataError(
        "the text \"{}\" has no [MASK] within its first {} tokens; put one where a word is asked for",
        text.substr(0, 60), max_length);
  }
  const at::Device device = model.parameters().front().tensor.device();
  tensor::Batch batch;
  batch.ids = {0};
  batch.fields = {{"input_ids", at::tensor(ids, at::kLong).unsqueeze(0)},
                  {"masked", at::tensor(masked, at::kLong)}};
  const at::Tensor logits_MV = model.forward(batch.to(device)).to(at::kCPU, at::kFloat);
  const auto [probabilities, words] = at::softmax(logits_MV, -1).topk(std::min(best, logits_MV.size(1)), -1);
  nlohmann::ordered_json answer{{"text", text}, {"masks", nlohmann::ordered_json::array()}};
  for (int64_t m = 0; m < logits_MV.size(0); ++m) {
    nlohmann::ordered_json candidates = nlohmann::ordered_json::array();
    for (int64_t k = 0; k < words.size(1); ++k) {
      const auto word = words[m][k].item<int64_t>();
      candidates.push_back({{"word", word < tokenizer.size() ? tokenizer.token(word) : "[unused]"},
                            {"probability", probabilities[m][k].item<double>()}});
    }
    answer["masks"].push_back(candidates);
  }
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

TaskSetup make_masked_words(const spec::RunSpec& spec, comm::Group& group) {
  const Start start = find_start(spec);
  LanguageTexts texts(spec, group.rank() == 0);
  const text::VocabularyOptions options{.size = spec.model.vocab_size};
  const LanguageTexts::Learning learning{
      .what = fmt::format("WordPiece of {} words", options.size),
      .count = [&](std::string_view document,
                   text::WordCounts& counts) { text::count_words(document, options, counts); },
      .learn =
          [&](const text::WordCounts& counts) {
            return fmt::format("{}", fmt::join(text::vocabulary_of_words(counts, options), "\n"));
          }};
  const std::shared_ptr<text::WordPiece> tokenizer = find_vocabulary(
      spec, start, [&](bool wanted) { return texts.vocabulary(learning, wanted); }, group);
  const int64_t max_length = spec.max_length();
  auto loaded = start_bert<nn::BertMaskedLm>(spec, start, *tokenizer, max_length, 2);
  nn::BertMaskedLm& model = *loaded.model;
  const data::MaskOptions masks{.max_length = max_length,
                                .rate = spec.task.mask_rate,
                                .whole_words = spec.task.whole_words,
                                .seed = static_cast<uint64_t>(spec.train.seed)};
  const text::TextRules& rules = tokenizer->rules();
  const data::CachedTokens tokens =
      texts.tokens(fmt::format("WordPiece {} {:d}{:d}{:d}", fingerprint_of(tokenizer->words()),
                               rules.lower_case, rules.strip_accents, rules.split_cjk),
                   tokenizer->size(), data::MaskedDataset::appender(*tokenizer));
  const auto dataset = [&](const std::shared_ptr<const data::Tokens>& split) {
    return std::make_shared<data::MaskedDataset>(split, *tokenizer, masks);
  };
  TaskSetup made;
  made.notes = std::move(loaded.notes);
  made.notes.insert(made.notes.end(), tokens.notes.begin(), tokens.notes.end());
  made.train = limited(dataset(tokens.train), spec);
  made.test = sampled(dataset(tokens.test), spec);
  made.model = std::move(loaded.model);
  made.metric = train::perplexity(false);
  if (tokens.validation) {
    made.validation = limited_validation(dataset(tokens.validation), spec);
    made.validation_metric = made.metric;
  }
  set_vocabulary(made, model, tokenizer, max_length);
  return made;
}

Scoring score_masked_words(const spec::ScoreSpec& spec, bool predict) {
  const auto tokenizer = std::make_shared<text::WordPiece>(text::WordPiece::load(vocabulary_of(spec.model)));
  auto loaded = nn::load_bert<nn::BertMaskedLm>(spec.model, {});
  if (loaded.fresh_head) {
    throw DataError("the model in {} has no head for masked words; train it with --task mlm first",
                    spec.model);
  }
  nn::BertMaskedLm& model = *loaded.model;
  require_vocabulary_fits(*tokenizer, model.config(), spec.model, "in it");
  const int64_t max_length = scored_length(spec, model.config().max_positions);
  Scoring made;
  made.metric = train::perplexity(false);
  made.model = std::move(loaded.model);
  if (predict) {
    made.answer = [&model, tokenizer, max_length, texts = prompts_of(spec, made.notes), best = spec.best](
                      const Scoring::ForEachOutput&, const std::function<void(const std::string&)>& line) {
      for (const std::string& text : texts) line(fill(model, *tokenizer, text, max_length, best));
    };
    return made;
  }
  const corpora::Corpus corpus = corpora::load_corpus(corpus_of(spec), purpose_of(spec, false));
  made.notes = corpus.notes;
  made.test =
      std::make_shared<data::MaskedDataset>(corpus.test, *tokenizer,
                                            data::MaskOptions{.max_length = max_length,
                                                              .rate = spec.mask_rate,
                                                              .whole_words = spec.whole_words,
                                                              .seed = static_cast<uint64_t>(spec.seed)});
  return made;
}

}  // namespace syncopate::tasks
