#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/corpora/text_file.h"
#include "syncopate/corpora/text_task_reader.h"

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

/// Opens a task by name and reads it once; the one place that knows them all. Throws ConfigError for an
/// unknown name or a path or column that is needed, DataError for bad data.
std::unique_ptr<const TextTaskReader> open_task(const TextSource& source, Purpose purpose);

/// The same in memory.
TextTask load_task(const TextSource& source, Purpose purpose);

/// Whether an example of the task is two texts; none: its columns would say, and are not named.
std::optional<bool> reads_pairs(const TextSource& source);

/// The files that open_task reads, of tasks that read tables; of others none. Throws as it does.
std::vector<std::filesystem::path> files_of_task(const TextSource& source, Purpose purpose);

}  // namespace syncopate::corpora
