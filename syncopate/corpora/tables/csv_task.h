#pragma once

#include "syncopate/corpora/task.h"

namespace syncopate::corpora {

/// The task `csv`: texts and labels of the user's own, from the columns that `source` names, in CSV, TSV
/// or JSON (lines or an array), each plain or with gzip. A folder has a training and a test file as
/// find_splits finds them; one file is used whole, or, for training, a fixed tenth of it is held out. The
/// labels are those of the training file (of the whole file where there is one), integers in numeric order,
/// others as bytes compare; `source.labels` overrules them. Rows without text are skipped and counted. To
/// train, the labels are checked as LabelsFound::check does. Throws ConfigError when a column is not named or
/// not there, DataError with file and line for a label that is not known or empty.
std::unique_ptr<const TextTaskReader> open_csv(const TextSource& source, Purpose purpose);

/// The files that it reads.
std::vector<std::filesystem::path> csv_files(const std::filesystem::path& path, Purpose purpose);

}  // namespace syncopate::corpora
