#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/data/text_task.h"

namespace syncopate::data {

/// Every task there is, for help and suggestions.
std::vector<std::string> task_names();

/// Loads a task by name; the one place that knows them all. `path` is a folder or a file as the task's own
/// loader says; empty where the task brings its data. Throws ConfigError for an unknown name or a path that
/// is needed, DataError for bad data.
TextTask load_task(const std::string& name, const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::data
