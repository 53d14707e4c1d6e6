#pragma once

#include <map>
#include <string>

#include "syncopate/run/spec.h"

namespace syncopate::tasks {

/// Scores a file of predictions against a data file, without a model. For questions the file is
/// {"id": "answer", ...}, as SQuAD's own script reads it, and the measures are its exact_match and f1, in per
/// cent; for texts and images it is what `predict` writes (a line of JSON per example with "index" and
/// "label"), and the measures are accuracy and macro_f1, shares. "total" and "missing" count examples; one
/// without a prediction is wrong. Throws DataError.
std::map<std::string, double> score_file(const std::string& task, const std::string& data,
                                         const std::string& predictions, const run::ColumnSpec& columns);

}  // namespace syncopate::tasks
