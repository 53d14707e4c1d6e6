#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/comm/group.h"
#include "syncopate/nn/bert/bert_folder.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/text/wordpiece.h"

// What every BERT task does to get its vocabulary and its model, whatever the head.
namespace syncopate::tasks {

/// The vocabulary a run uses: --vocab, the start folder's, or one built from `texts` by rank 0 for all.
/// Collective.
std::unique_ptr<text::WordPiece> find_vocabulary(const spec::RunSpec& spec, const Start& start,
                                                 const std::vector<std::string_view>& texts,
                                                 comm::Group& group);

/// The same where the words to build it from are not at hand as texts. `learn` gives the words, one a line,
/// where it is told that they are wanted: by rank 0. It is called on all ranks, which may load texts by then.
using LearnVocabulary = std::function<std::string(bool wanted)>;
std::unique_ptr<text::WordPiece> find_vocabulary(const spec::RunSpec& spec, const Start& start,
                                                 const LearnVocabulary& learn, comm::Group& group);

/// The vocab.txt of a BERT's folder, else its tokenizer.json; throws DataError when there is none or the
/// model is of another kind.
std::string vocabulary_of(const std::string& folder);

/// Fills in how the model, which `made` holds, is saved with its vocabulary, and what it reads.
void set_vocabulary(TaskSetup& made, const nn::Bert& model, const std::shared_ptr<text::WordPiece>& tokenizer,
                    int64_t max_length);

/// Throws DataError unless the vocabulary is the model's.
void require_vocabulary_fits(const text::WordPiece& tokenizer, const nn::BertConfig& config,
                             const std::string& folder, const std::string& vocab);

/// The same of a run's vocabulary, where it starts from a folder.
void require_vocabulary_fits(const spec::RunSpec& spec, const Start& start, const text::WordPiece& tokenizer);

/// The config of what a run starts with. Throws ConfigError unless it is of the shape that --model names and
/// has positions for `max_length` tokens.
nn::BertConfig start_config(const spec::RunSpec& spec, const Start& start, int64_t max_length);

/// The same check by itself, before what takes its time.
inline void require_bert_fits(const spec::RunSpec& spec, const Start& start, int64_t max_length) {
  start_config(spec, start, max_length);
}

/// The model a run starts with: a preset with fresh values, or a folder's. `num_labels`: a classifier's.
template <typename Head>
nn::Loaded<Head> start_bert(const spec::RunSpec& spec, const Start& start, const text::WordPiece& tokenizer,
                            int64_t max_length, int64_t num_labels) {
  nn::BertConfig config = start_config(spec, start, max_length);
  nn::Loaded<Head> loaded;
  if (start.folder.empty()) {
    config.vocab_size = tokenizer.size();
    config.pad_token = tokenizer.pad();
    config.num_labels = num_labels;
    loaded.model = nn::make_bert<Head>(config, start_seed(spec));
    loaded.fresh_head = true;
  } else {
    loaded = nn::load_bert<Head>(
        start.folder,
        {.num_labels = num_labels, .seed = start_seed(spec), .fresh_head = start.fresh_head, .settle = {}});
    require_vocabulary_fits(spec, start, tokenizer);
  }
  loaded.model->set_dropout(spec.model.dropout, spec.model.inner_dropout);
  loaded.model->set_label_smoothing(spec.optim.label_smoothing);
  return loaded;
}

}  // namespace syncopate::tasks
