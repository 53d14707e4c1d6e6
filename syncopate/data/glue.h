#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/data/text_task.h"

namespace syncopate::data {

/// Where a GLUE task keeps what, and its labels as the files write them, by number.
struct GlueFormat {
  std::string name;
  std::string first;                ///< column of the first text
  std::string second;               ///< column of the second text; empty: single texts
  std::vector<std::string> labels;  ///< found in the column "label"
};

const std::vector<GlueFormat>& glue_formats();

/// A task in GLUE's TSV form. `path`: a folder with train.tsv and dev.tsv (the test split), or one file: used
/// whole as the test split, or, for training, a fixed tenth held out of it. Throws DataError with file and
/// line.
TextTask load_glue(const GlueFormat& format, const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::data
