#pragma once

#include <string>

#include "syncopate/corpora/images/images.h"
#include "syncopate/corpora/squad/squad.h"
#include "syncopate/corpora/task.h"
#include "syncopate/corpora/text_file.h"
#include "syncopate/corpora/text_task.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/spec/score_spec.h"

// The data of the tasks that data::load_task does not load, by the task's name, and how a spec's words
// become those of the readers.
namespace syncopate::tasks {

corpora::ImageTask load_images(const std::string& task, const std::string& path, corpora::Purpose purpose);
corpora::SquadTask load_questions(const std::string& task, const std::string& path, corpora::Purpose purpose,
                                  const std::string& encoding);

/// What a text task is read from.
corpora::TextSource text_source(const std::string& task, const std::string& path,
                                const spec::ColumnSpec& columns);

/// Keeps the sample of task.test_limit, and of each part of the test split what is in it.
void keep_test_sample(corpora::TextTask& task, const spec::RunSpec& spec);

/// How the task's files are written.
corpora::FileForm file_form(const spec::ColumnSpec& columns);

/// What the data of an evaluation, or of predictions, are loaded for.
corpora::Purpose purpose_of(const spec::ScoreSpec& spec, bool predict);

}  // namespace syncopate::tasks
