#pragma once

#include <map>
#include <string>

#include "syncopate/tasks/setup.h"

namespace syncopate::tasks {

/// Scores a file of predictions against a data file, without a model. For questions the file is
/// {"id": "answer", ...}, as SQuAD's own script reads it, and the measures are its exact_match and f1, in per
/// cent; for texts and images it is what `predict` writes (a line of JSON per example with "index" and
/// "label"), and the measures are accuracy and macro_f1, fractions. "total" and "missing" count examples; one
/// without a prediction is wrong. Throws DataError, and ConfigError for a task without predictions.
std::map<std::string, double> score_file(const PredictionsFile& file);

// By kind of answer; the table of families names one for each family.
std::map<std::string, double> score_text_labels(const PredictionsFile& file);
std::map<std::string, double> score_image_labels(const PredictionsFile& file);
std::map<std::string, double> score_answers(const PredictionsFile& file);

}  // namespace syncopate::tasks
