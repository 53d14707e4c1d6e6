#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/corpora/text_file.h"
#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// What a text task is read from.
struct TextSource {
  std::string task;
  std::filesystem::path path{};  ///< folder or file, as the task's own loader says; empty: the built-in data
  std::string text{}, text_pair{}, label{};  ///< csv: the columns
  std::vector<std::string>
      labels{};     ///< csv: known labels in their order (a trained model's); empty: from the data
  FileForm form{};  ///< of tables
};

/// Every text task there is, for help and suggestions.
std::vector<std::string> task_names();

/// Loads a task by name; the one place that knows them all. Throws ConfigError for an unknown name or a path
/// or column that is needed, DataError for bad data.
TextTask load_task(const TextSource& source, Purpose purpose);

/// Whether an example of the task is two texts; none: its columns would say, and are not named.
std::optional<bool> reads_pairs(const TextSource& source);

/// The files that load_task reads, of tasks that read tables; of others none. Throws as it does.
std::vector<std::filesystem::path> files_of_task(const TextSource& source, Purpose purpose);

}  // namespace syncopate::corpora
