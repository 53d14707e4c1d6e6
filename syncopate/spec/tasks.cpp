#include "syncopate/spec/tasks.h"

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"

namespace syncopate::spec {

const std::vector<TaskFamily>& task_families() {
  static const std::vector<std::string> bert{"bert-tiny", "bert-mini", "bert-small", "bert-base",
                                             "bert-large"};
  static const std::vector<TaskFamily> kFamilies{
      {.name = "classification",
       .tasks = {"supersense", "hypernym", "rte", "sst2", "mnli", "csv"},
       .models = bert,
       .max_length = 128,
       .eval_batch = 64},
      {.name = "masked-words",
       .tasks = {"mlm"},
       .models = bert,
       .max_length = 128,
       .eval_batch = 32,
       .takes_prompts = true},
      {.name = "questions",
       .tasks = {"squad", "definition-qa"},
       .models = bert,
       .max_length = 320,
       .eval_batch = 32},
      {.name = "next-words",
       .tasks = {"clm"},
       .models = {"gpt-tiny", "gpt-mini", "gpt2", "gpt2-xl"},
       .max_length = 128,
       .eval_batch = 8,
       .takes_prompts = true},
      {.name = "images",
       .tasks = {"cifar10", "idx"},
       .models = {"resnet-8", "resnet-18"},
       .max_length = 0,
       .eval_batch = 128},
  };
  return kFamilies;
}

const TaskFamily& task_family(std::string_view task) {
  for (const TaskFamily& family : task_families()) {
    if (std::find(family.tasks.begin(), family.tasks.end(), task) != family.tasks.end()) return family;
  }
  throw ConfigError("unknown task \"{}\"{}", task, suggestion(task, task_names()));
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskFamily& family : task_families())
    names.insert(names.end(), family.tasks.begin(), family.tasks.end());
  return names;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const TaskFamily& family : task_families()) {
    for (const std::string& model : family.models) {
      if (std::find(names.begin(), names.end(), model) == names.end()) names.push_back(model);
    }
  }
  return names;
}

}  // namespace syncopate::spec
