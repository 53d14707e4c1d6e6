#pragma once

#include <string>

#include "syncopate/corpora/images/images.h"
#include "syncopate/corpora/squad/squad.h"
#include "syncopate/corpora/text_task.h"
#include "syncopate/spec/score_spec.h"

// The data of the tasks that data::load_task does not load, by the task's name.
namespace syncopate::tasks {

corpora::ImageTask load_images(const std::string& task, const std::string& path, corpora::Purpose purpose);
corpora::SquadTask load_questions(const std::string& task, const std::string& path, corpora::Purpose purpose);

/// What the data of an evaluation, or of predictions, are loaded for.
corpora::Purpose purpose_of(const spec::ScoreSpec& spec, bool predict);

}  // namespace syncopate::tasks
