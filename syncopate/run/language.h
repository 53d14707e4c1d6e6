#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/data/corpus.h"
#include "syncopate/data/dataset.h"
#include "syncopate/run/materials.h"

// What masked and causal language modelling share.
namespace syncopate::run {

data::CorpusSource corpus_of(const RunSpec& spec);
std::vector<std::string_view> views_of(const std::vector<std::string>& documents);

/// The seeded subset of --limit, and the first task.test_limit, of packed blocks.
std::shared_ptr<const data::Dataset> limited(std::shared_ptr<const data::Dataset> blocks,
                                             const RunSpec& spec);
std::shared_ptr<const data::Dataset> first_of(std::shared_ptr<const data::Dataset> blocks,
                                              const RunSpec& spec);

/// The texts to fill in or continue: --prompt, or the lines of --data that are not empty. Throws DataError
/// when there are none.
std::vector<std::string> prompts_of(const ScoreSpec& spec);

/// Tokens per example when scoring: as asked, or as trained.
int64_t scored_length(const ScoreSpec& spec, int64_t positions);

}  // namespace syncopate::run
