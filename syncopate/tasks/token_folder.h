#pragma once

#include <cstdint>
#include <string>

#include "syncopate/base/progress.h"
#include "syncopate/spec/run_spec.h"

// What task.cache means, whatever is kept there.
namespace syncopate::tasks {

/// Where a run's tokens may be kept; empty: nowhere.
std::string token_folder(const spec::RunSpec& spec);

/// Whether nobody has named that folder.
bool chosen_by_itself(const spec::RunSpec& spec);

/// Whether files of so many bytes are worth it: always where the user has named a folder.
bool worth_keeping(const spec::RunSpec& spec, uintmax_t bytes);

/// How their making is shown: where it takes a while.
Progress::Style progress_of_tokens(uintmax_t bytes);

/// What the user is told where the folder cannot be used.
std::string not_kept(const spec::RunSpec& spec, const std::string& why);

}  // namespace syncopate::tasks
