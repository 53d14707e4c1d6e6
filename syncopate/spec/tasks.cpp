#include "syncopate/spec/tasks.h"

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::spec {

const std::vector<TaskFamily>& task_families() {
  static const std::vector<std::string> bert{"bert-tiny", "bert-mini", "bert-small", "bert-base",
                                             "bert-large"};
  static const std::vector<std::string> texts{"task.max_length", "model.vocab", "model.vocab_size",
                                              "model.dropout"};
  const auto texts_and = [](std::vector<std::string> more) {
    more.insert(more.begin(), texts.begin(), texts.end());
    return more;
  };
  static const std::vector<TaskFamily> kFamilies{
      {.name = "classification",
       .tasks = {"supersense", "hypernym", "rte", "sst2", "mnli", "csv"},
       .models = bert,
       .max_length = 128,
       .eval_batch = 64,
       .takes_prompts = true,
       .settings = texts_and({"model.inner_dropout", "optim.label_smoothing", "train.arrange"}),
       .answers = {"prompt-pair"},
       .own_settings = {{"rte", {"task.encoding", "task.separator", "task.cache"}},
                        {"sst2", {"task.encoding", "task.separator", "task.cache"}},
                        {"mnli", {"task.encoding", "task.separator", "task.cache"}},
                        {"csv",
                         {"task.text", "task.text_pair", "task.label", "task.encoding", "task.separator",
                          "task.cache"}}}},
      {.name = "masked-words",
       .tasks = {"mlm"},
       .models = bert,
       .max_length = 128,
       .eval_batch = 32,
       .takes_prompts = true,
       .drawn = "masked words",
       .answers_lines = true,
       .settings =
           texts_and({"model.inner_dropout", "optim.label_smoothing", "task.text", "task.documents",
                      "task.mask_rate", "task.whole_words", "task.encoding", "task.separator", "task.cache"}),
       .answers = {"best", "seed"}},
      {.name = "questions",
       .tasks = {"squad", "definition-qa"},
       .models = bert,
       .max_length = 320,
       .eval_batch = 32,
       .settings =
           texts_and({"model.inner_dropout", "optim.label_smoothing", "task.stride", "train.arrange"}),
       .answers = {"may-be-empty"},
       .own_settings = {{"squad", {"task.encoding"}}}},
      {.name = "next-words",
       .tasks = {"clm"},
       .models = {"gpt-tiny", "gpt-mini", "gpt2", "gpt2-xl"},
       .max_length = 128,
       .eval_batch = 8,
       .takes_prompts = true,
       .answers_lines = true,
       .settings =
           texts_and({"task.text", "task.documents", "task.encoding", "task.separator", "task.cache"}),
       .answers = {"tokens", "temperature", "top-k", "top-p", "seed"}},
      {.name = "images",
       .tasks = {"cifar10", "idx"},
       .models = {"resnet-8", "resnet-18"},
       .max_length = 0,
       .eval_batch = 128,
       .drawn = "crops and flips",
       .settings = {"task.augment", "model.batch_norm", "optim.label_smoothing"},
       .answers = {"best"}},
  };
  return kFamilies;
}

const TaskFamily& task_family(std::string_view task) {
  for (const TaskFamily& family : task_families()) {
    if (std::find(family.tasks.begin(), family.tasks.end(), task) != family.tasks.end()) return family;
  }
  throw ConfigError("unknown task \"{}\"{}", task, suggestion(task, task_names()));
}

std::vector<std::string> settings_of_task(const std::string& task) {
  const TaskFamily& family = task_family(task);
  std::vector<std::string> settings = family.settings;
  if (const auto own = family.own_settings.find(task); own != family.own_settings.end())
    settings.insert(settings.end(), own->second.begin(), own->second.end());
  return settings;
}

bool examples_come_back(const RunSpec& spec) {
  if (task_family(spec.task.name).drawn.empty()) return true;
  const std::vector<std::string> heeded = settings_of_task(spec.task.name);
  return !spec.task.augment && std::find(heeded.begin(), heeded.end(), "task.augment") != heeded.end();
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
