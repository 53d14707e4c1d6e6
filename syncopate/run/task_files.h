#pragma once

#include <string>

#include "syncopate/data/images.h"
#include "syncopate/data/squad.h"
#include "syncopate/data/text_task.h"

// The data of the tasks that data::load_task does not load, by the task's name.
namespace syncopate::run {

data::ImageTask load_images(const std::string& task, const std::string& path, data::Purpose purpose);
data::SquadTask load_questions(const std::string& task, const std::string& path, data::Purpose purpose);

}  // namespace syncopate::run
