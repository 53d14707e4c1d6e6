#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// The files found at a data path.
struct SplitFiles {
  std::filesystem::path train;  ///< empty unless a folder was given for training
  std::filesystem::path test;   ///< of one file: that file, from which training holds out a tenth
  bool one_file = false;

  std::vector<std::filesystem::path> all() const {
    return train.empty() ? std::vector{test} : std::vector{train, test};
  }
};

/// The folder's regular files that `keep` accepts, in the order of their names. Throws DataError when it
/// cannot be listed.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                            const std::function<bool(const std::filesystem::path&)>& keep);

/// A file's ending in lower case, .gz apart: ".csv" of A.CSV and of a.csv.gz.
std::string lower_ending(const std::filesystem::path& path);

/// The folder's files with one of the `endings` (".tsv"), plain or with .gz, in the order of their names.
std::vector<std::filesystem::path> files_with_ending(const std::filesystem::path& folder,
                                                     const std::vector<std::string>& endings);

/// Throws DataError, with how to convert them, when the folder has Parquet files: for one without any file
/// that can be read.
void refuse_parquet(const std::filesystem::path& folder);

/// The file among `files` whose stem is `word`, else the only one whose stem contains it, in any case;
/// nothing where none does. Throws DataError, naming the candidates, where several do alike.
std::optional<std::filesystem::path> find_named(const std::vector<std::filesystem::path>& files,
                                                std::string_view word);

/// Throws DataError unless `data` exists; `form` says what to give ("a folder with ..., or a single file,").
void require_data(const std::filesystem::path& data, std::string_view form);

/// A folder's training file is named `train`; its test file `dev`, `validation`, `valid` or `test`, the
/// first of these that is there. Names need only contain these words where that leaves one file. Throws
/// DataError when a file is missing or several fit alike.
SplitFiles find_splits(const std::filesystem::path& data, const std::vector<std::string>& endings,
                       Purpose purpose);

/// The training file of a folder, found as find_splits does.
std::filesystem::path find_training_file(const std::filesystem::path& folder,
                                         const std::vector<std::string>& endings);

}  // namespace syncopate::corpora
