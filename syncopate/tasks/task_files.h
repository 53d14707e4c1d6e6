#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncopate/corpora/images/images.h"
#include "syncopate/corpora/squad/squad.h"
#include "syncopate/corpora/task.h"
#include "syncopate/corpora/text_file.h"
#include "syncopate/corpora/text_task.h"
#include "syncopate/spec/run_spec.h"
#include "syncopate/spec/score_spec.h"

// The data of the tasks that corpora::open_task does not open, by the task's name, and how a spec's words
// become those of the readers.
namespace syncopate::tasks {

corpora::ImageTask load_images(const std::string& task, const std::string& path, corpora::Purpose purpose);
corpora::SquadTask load_questions(const std::string& task, const std::string& path, corpora::Purpose purpose,
                                  const std::string& encoding);

/// What a text task is read from.
corpora::TextSource text_source(const std::string& task, const std::string& path,
                                const spec::ColumnSpec& columns);

/// The parts of a test split of which these examples, ascending, are kept.
std::vector<corpora::TestPart> parts_among(const std::vector<corpora::TestPart>& parts,
                                           const std::vector<int64_t>& kept);

/// How the task's files are written.
corpora::FileForm file_form(const spec::ColumnSpec& columns);

/// What the data of an evaluation, or of predictions, are loaded for.
corpora::Purpose purpose_of(const spec::ScoreSpec& spec, bool predict);

}  // namespace syncopate::tasks
