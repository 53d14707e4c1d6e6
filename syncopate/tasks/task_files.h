#pragma once

#include <string>

#include "syncopate/corpora/images/images.h"
#include "syncopate/corpora/squad/squad.h"
#include "syncopate/corpora/text_task.h"

// The data of the tasks that data::load_task does not load, by the task's name.
namespace syncopate::tasks {

corpora::ImageTask load_images(const std::string& task, const std::string& path, corpora::Purpose purpose);
corpora::SquadTask load_questions(const std::string& task, const std::string& path, corpora::Purpose purpose);

}  // namespace syncopate::tasks
