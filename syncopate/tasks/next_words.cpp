// clm: documents, each word asked for given those before it.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/data/causal_dataset.h"
#include "syncopate/nn/gpt/generate.h"
#include "syncopate/nn/gpt/gpt_folder.h"
#include "syncopate/nn/model_folder.h"
#include "syncopate/tasks/language.h"
#include "syncopate/tasks/language_texts.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"
#include "syncopate/text/bpe.h"
#include "syncopate/text/bpe_training.h"

namespace syncopate::tasks {
namespace {

/// The vocabulary of a GPT-2's folder. Throws DataError, where the model is of another kind for that.
text::ByteBpe pieces_of(const std::string& folder) {
  nn::require_model_folder(folder, nn::gpt_preset_names());
  nn::read_gpt_config(std::filesystem::path(folder) / "config.json");
  return text::ByteBpe::load(folder);
}

/// --vocab, the start folder's, or one built from the texts by rank 0 for all. Collective.
text::ByteBpe find_pieces(const spec::RunSpec& spec, const Start& start, LanguageTexts& texts,
                          comm::Group& group) {
  if (!spec.model.vocab.empty()) return text::ByteBpe::load(spec.model.vocab);
  if (!start.folder.empty()) return pieces_of(start.folder);
  const text::BpeOptions options{.size = spec.model.vocab_size};
  const LanguageTexts::Learning learning{
      .what = fmt::format("byte-level BPE of {} words", options.size),
      .count = [](std::string_view document,
                  text::WordCounts& counts) { text::count_bpe_words(document, counts); },
      .learn =
          [&](const text::WordCounts& counts) {
            const text::BpeTable table = text::bpe_of_words(counts, options);
            return nlohmann::json{{"words", table.words}, {"merges", table.merges}}.dump();
          }};
  const nlohmann::json shared =
      nlohmann::json::parse(comm::broadcast_text(group, texts.vocabulary(learning, group.rank() == 0), 0));
  return text::ByteBpe({.words = shared.at("words"), .merges = shared.at("merges")});
}

/// All that decides what texts become.
std::string what_of(const text::ByteBpe& pieces) {
  std::vector<std::string> merges;
  for (const auto& [left, right] : pieces.table().merges) merges.push_back(left + " " + right);
  return fmt::format("byte-level BPE {} {}", fingerprint_of(pieces.table().words), fingerprint_of(merges));
}

void require_pieces_fit(const text::ByteBpe& pieces, const nn::GptConfig& config, const std::string& folder) {
  if (pieces.size() <= config.vocab_size) return;
  throw DataError(
      "the vocabulary has {} words but the model {} has embeddings for {}; use the vocabulary it was trained "
      "with",
      pieces.size(), folder, config.vocab_size);
}

}  // namespace

TaskSetup make_next_words(const spec::RunSpec& spec, comm::Group& group) {
  if (spec.optim.label_smoothing > 0) {
    throw ConfigError("--label-smoothing does nothing for clm; leave it out");
  }
  const Start start = find_start(spec);
  LanguageTexts texts(spec, group.rank() == 0);
  const auto pieces = std::make_shared<text::ByteBpe>(find_pieces(spec, start, texts, group));
  const int64_t max_length = spec.max_length();
  TaskSetup made;
  std::unique_ptr<nn::Gpt> owned;
  if (start.folder.empty()) {
    nn::GptConfig config = nn::gpt_preset(spec.model.name);
    config.vocab_size = pieces->size();
    if (const auto end = pieces->end_of_text()) config.bos_token = config.eos_token = *end;
    require_length_fits(max_length, config.max_positions, spec.model.name);
    owned = nn::make_gpt(config, start_seed(spec));
  } else {
    nn::LoadedGpt loaded = nn::load_gpt(start.folder, start_seed(spec));
    owned = std::move(loaded.model);
    made.notes = std::move(loaded.notes);
    const bool preset = nn::is_gpt_preset(spec.model.name);
    const nn::GptConfig named = preset ? nn::gpt_preset(spec.model.name) : nn::GptConfig{};
    require_same_shape(spec, preset && named.layers == owned->config().layers &&
                                 named.hidden == owned->config().hidden &&
                                 named.heads == owned->config().heads);
    require_pieces_fit(*pieces, owned->config(), start.folder);
    require_length_fits(max_length, owned->config().max_positions, start.folder);
  }
  nn::Gpt& model = *owned;
  model.set_dropout(spec.model.dropout);
  const data::CachedTokens tokens =
      texts.tokens(what_of(*pieces), pieces->size(), data::CausalDataset::appender(*pieces));
  const auto dataset = [&](const std::shared_ptr<const data::Tokens>& split) {
    return std::make_shared<data::CausalDataset>(split, *pieces, max_length);
  };
  made.notes.insert(made.notes.end(), tokens.notes.begin(), tokens.notes.end());
  made.train = limited(dataset(tokens.train), spec);
  made.test = sampled(dataset(tokens.test), spec);
  made.model = std::move(owned);
  made.metric = train::perplexity(true);
  if (tokens.validation) {
    made.validation = limited_validation(dataset(tokens.validation), spec);
    made.validation_metric = made.metric;
  }
  made.save = [&model, pieces, max_length](const std::filesystem::path& folder) {
    nn::save_gpt(folder, model);
    pieces->save(folder);
    save_trained_length(folder, max_length);
  };
  made.input = fmt::format("{} words", pieces->size());
  made.fingerprint = fingerprint_of(pieces->table().words);
  return made;
}

Scoring score_next_words(const spec::ScoreSpec& spec, bool predict) {
  const auto pieces = std::make_shared<text::ByteBpe>(pieces_of(spec.model));
  nn::LoadedGpt loaded = nn::load_gpt(spec.model, 0);
  nn::Gpt& model = *loaded.model;
  require_pieces_fit(*pieces, model.config(), spec.model);
  const int64_t max_length = scored_length(spec, model.config().max_positions);
  Scoring made;
  made.metric = train::perplexity(true);
  made.model = std::move(loaded.model);
  if (predict) {
    made.answer = [&model, pieces, max_length, texts = prompts_of(spec, made.notes),
                   next = spec.continuation](const Scoring::ForEachOutput&,
                                             const std::function<void(const std::string&)>& line) {
      uint64_t number = 0;
      for (const std::string& text : texts) {
        const std::vector<int32_t> prompt = pieces->encode(text);
        const std::vector<int64_t> all =
            nn::generate(model, {prompt.begin(), prompt.end()}, next.tokens,
                         {.temperature = next.temperature, .top_k = next.top_k, .top_p = next.top_p},
                         mix_key(static_cast<uint64_t>(next.seed), number++), pieces->end_of_text(),
                         {.positions = max_length, .words = pieces->size()});
        std::vector<int32_t> added(all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end());
        if (!added.empty() && added.back() == pieces->end_of_text()) added.pop_back();
        const nlohmann::ordered_json answer{{"text", text}, {"continuation", pieces->decode(added)}};
        line(answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      }
    };
    return made;
  }
  const corpora::Corpus corpus = corpora::load_corpus(corpus_of(spec), purpose_of(spec, false));
  made.notes = corpus.notes;
  made.test = std::make_shared<data::CausalDataset>(corpus.test, *pieces, max_length);
  return made;
}

}  // namespace syncopate::tasks
