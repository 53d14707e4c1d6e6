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
std::vector<std::string_view> views_of(const std::vector<std::string>& documents);

/// The texts to fill in or continue: --prompt, or the lines of --data that are not empty. Throws DataError
/// when there are none.
std::vector<std::string> prompts_of(const spec::ScoreSpec& spec);

}  // namespace syncopate::tasks
