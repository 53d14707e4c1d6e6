#include "syncopate/tasks/wordpiece_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/nn/model_folder.h"
#include "syncopate/text/tokenizer_json.h"
#include "syncopate/text/vocabulary.h"

namespace syncopate::tasks {

std::unique_ptr<text::WordPiece> find_vocabulary(const spec::RunSpec& spec, const Start& start,
                                                 const std::vector<std::string_view>& texts,
                                                 comm::Group& group) {
  const LearnVocabulary learn = [&](bool wanted) -> std::string {
    if (!wanted) return "";
    return fmt::format("{}", fmt::join(text::train_vocabulary(texts, {.size = spec.model.vocab_size}), "\n"));
  };
  return find_vocabulary(spec, start, learn, group);
}

std::unique_ptr<text::WordPiece> find_vocabulary(const spec::RunSpec& spec, const Start& start,
                                                 const LearnVocabulary& learn, comm::Group& group) {
  if (!spec.model.vocab.empty())
    return std::make_unique<text::WordPiece>(text::WordPiece::load(spec.model.vocab));
  if (!start.folder.empty())
    return std::make_unique<text::WordPiece>(text::WordPiece::load(vocabulary_of(start.folder)));
  const std::string text = comm::broadcast_text(group, learn(group.rank() == 0), 0);
  std::vector<std::string> words;
  for (const std::string_view word : split(text, '\n')) words.emplace_back(word);
  return std::make_unique<text::WordPiece>(std::move(words), text::rules_for(true));
}

std::string vocabulary_of(const std::string& folder) {
  nn::require_model_folder(folder, nn::preset_names());
  nn::read_bert_config(std::filesystem::path(folder) /
                       "config.json");  // another kind of model is refused as such
  for (const char* name : {"vocab.txt", text::kTokenizerJson}) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (std::filesystem::exists(path)) return path.string();
  }
  throw DataError(
      "the model folder {} has neither vocab.txt nor tokenizer.json; put one there or name one with --vocab",
      folder);
}

void set_vocabulary(TaskSetup& made, const nn::Bert& model, const std::shared_ptr<text::WordPiece>& tokenizer,
                    int64_t max_length) {
  made.save = [&model, tokenizer, max_length](const std::filesystem::path& folder) {
    nn::save_bert(folder, model);
    tokenizer->save(folder);
    save_trained_length(folder, max_length);
  };
  made.input = fmt::format("{} words", tokenizer->size());
  made.fingerprint = fingerprint_of(tokenizer->words());
}

nn::BertConfig start_config(const spec::RunSpec& spec, const Start& start, int64_t max_length) {
  nn::BertConfig config;
  if (start.folder.empty()) {
    config = nn::preset(spec.model.name);
  } else {
    config = nn::read_bert_config(std::filesystem::path(start.folder) / "config.json");
    if (nn::is_preset(spec.model.name)) {
      const nn::BertConfig named = nn::preset(spec.model.name);
      require_same_shape(spec, named.layers == config.layers && named.hidden == config.hidden &&
                                   named.heads == config.heads && named.ffn == config.ffn);
    } else {
      require_same_shape(spec, false);
    }
  }
  require_length_fits(max_length, config.max_positions,
                      start.folder.empty() ? spec.model.name : start.folder);
  return config;
}

// Tables are padded to a round number of rows at times; more rows than that, or fewer, are another
// vocabulary's.
void require_vocabulary_fits(const text::WordPiece& tokenizer, const nn::BertConfig& config,
                             const std::string& folder, const std::string& vocab) {
  constexpr int64_t kMostPadding = 128;
  const int64_t surplus = config.vocab_size - tokenizer.size();
  if (surplus == 0 || (surplus > 0 && surplus < kMostPadding && config.vocab_size % 8 == 0)) return;
  throw DataError(
      "the vocabulary {} has {} words but the model {} has embeddings for {}; use the vocabulary it was "
      "trained with",
      vocab, tokenizer.size(), folder, config.vocab_size);
}

void require_vocabulary_fits(const spec::RunSpec& spec, const Start& start,
                             const text::WordPiece& tokenizer) {
  if (start.folder.empty()) return;
  require_vocabulary_fits(tokenizer,
                          nn::read_bert_config(std::filesystem::path(start.folder) / "config.json"),
                          start.folder, spec.model.vocab.empty() ? "in it" : spec.model.vocab);
}

}  // namespace syncopate::tasks
