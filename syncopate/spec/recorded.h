#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/record/run_folder.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/spec/score_spec.h"

// Settings that a run wrote down, for those who come after it.
namespace syncopate::spec {

/// The settings of a spec.json, or of the run in a folder. Throws DataError where there are none.
RunSpec read_spec(const std::filesystem::path& path);

/// Where a recorded spec and what somebody gave beside it say the same thing in two ways (--steps and
/// --epochs, --batch-size and --global-batch, --model and --init-from), what was given holds alone.
void prefer_given(RunSpec& spec, const std::vector<std::string>& given);

/// The run that trained a model: the folder itself is one's, or lies in one as its model/.
std::optional<record::RunFolder> run_of_model(const std::filesystem::path& model);

/// Fills in, from the run that trained the model, what `given` (a flag without dashes) does not name: task
/// and data, columns, lengths, masks. Notes where the data are. Throws ConfigError where no task is known
/// then.
void complete_from_run(ScoreSpec& spec, const std::function<bool(const std::string& flag)>& given,
                       bool predict);

}  // namespace syncopate::spec
