#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/corpus.h"
#include "syncopate/data/dataset.h"
#include "syncopate/tasks/setup.h"

// What masked and causal language modelling share.
namespace syncopate::tasks {

corpora::CorpusSource corpus_of(const spec::RunSpec& spec);
corpora::CorpusSource corpus_of(const spec::ScoreSpec& spec);
std::vector<std::string_view> views_of(const std::vector<std::string>& documents);

/// The documents of the validation split: held out of `corpus.train`, or those of its file; none: it is off.
std::vector<std::string> validation_of(corpora::Corpus& corpus, const spec::RunSpec& spec);

/// Of its blocks, with --limit, as many as are a share of those trained on.
std::shared_ptr<const data::Dataset> limited_validation(std::shared_ptr<const data::Dataset> whole,
                                                        const spec::RunSpec& spec);

/// The texts to fill in or continue: --prompt, or of --data the lines, or the rows of a table, that are not
/// empty. Adds to `notes` what was replaced. Throws DataError when there are none.
std::vector<std::string> prompts_of(const spec::ScoreSpec& spec, std::vector<std::string>& notes);

}  // namespace syncopate::tasks
