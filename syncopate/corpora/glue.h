#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/corpora/text_task.h"

namespace syncopate::corpora {

/// Where a GLUE task keeps what, and its labels as the files write them, by number.
struct GlueFormat {
  std::string name;
  std::string first;                       ///< column of the first text
  std::string second;                      ///< column of the second text; empty: single texts
  std::vector<std::string> labels;         ///< found in the label column
  std::vector<std::string> label_columns;  ///< the first of these that the file has
  std::string no_label{};                  ///< rows marked so have no gold label: skipped and counted
  std::vector<std::string>
      parts{};  ///< a folder's test split may come in files of these names ("dev_<name>")
};

const std::vector<GlueFormat>& glue_formats();

/// A task in GLUE's form. `path`: a folder with a training and a test file as find_splits finds them, or one
/// file: used whole as the test split, or, for training, a fixed tenth held out of it. TSV is read without
/// quoting, `.csv` and `.jsonl` as their endings say. Throws DataError with file and line.
TextTask load_glue(const GlueFormat& format, const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::corpora
