#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/corpora/text_file.h"
#include "syncopate/corpora/text_task_reader.h"

namespace syncopate::corpora {

/// Where a GLUE task keeps what, and its labels as the files write them, by number.
struct GlueFormat {
  std::string name;
  std::vector<std::string> first;          ///< column of the first text: the first of these that there is
  std::vector<std::string> second;         ///< likewise of the second text; empty: single texts
  std::vector<std::string> labels;         ///< found in the label column, or their numbers
  std::vector<std::string> label_columns;  ///< the first of these that the file has
  std::vector<std::string>
      parts{};  ///< a folder's test split may come in files of these names ("dev_<name>")
};

const std::vector<GlueFormat>& glue_formats();

/// A task in GLUE's form. `path`: a folder with a training and a test file as find_splits finds them, or one
/// file: used whole as the test split, or, for training, a fixed tenth held out of it. TSV is read without
/// quoting, `.csv`, `.jsonl` and `.json` as their endings say, each plain or with gzip. Columns and labels
/// are GLUE's own or those of Hugging Face's copies, whose labels are numbers. Rows with the label "-" or -1
/// have no gold label: they are skipped and counted. Throws DataError with file and line.
std::unique_ptr<const TextTaskReader> open_glue(const GlueFormat& format, const std::filesystem::path& path,
                                                Purpose purpose, const FileForm& form = {});

/// The files that it reads.
std::vector<std::filesystem::path> glue_files(const GlueFormat& format, const std::filesystem::path& path,
                                              Purpose purpose);

}  // namespace syncopate::corpora
