#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The paper half of the tasks; tasks/setup.h has the other.
namespace syncopate::spec {

struct RunSpec;

/// A family of tasks: the same kind of examples, model and score.
struct TaskFamily {
  std::string_view name;
  std::vector<std::string> tasks;
  std::vector<std::string> models;  ///< presets, the smallest first
  int64_t max_length = 0;           ///< tokens of an example unless told otherwise; 0: no texts
  int64_t eval_batch = 64;          ///< likewise
  bool takes_prompts = false;       ///< answers texts given on the command line
  std::string_view drawn{};         ///< what is drawn anew whenever an example is read; empty: nothing
  bool answers_lines = false;       ///< `predict` reads texts line by line, not the task's data
  /// Dotted names of the settings that its tasks heed, beside those that every task does.
  std::vector<std::string> settings{};
  std::vector<std::string> answers{};  ///< flags of `predict` that are its own
  /// More settings, which one of its tasks heeds alone.
  std::map<std::string, std::vector<std::string>> own_settings{};
};

const std::vector<TaskFamily>& task_families();
const TaskFamily& task_family(std::string_view task);  ///< throws ConfigError with a suggestion
/// Those of its family and its own.
std::vector<std::string> settings_of_task(const std::string& task);
/// Whether an example is the same text or image in every epoch: nothing of it is drawn anew.
bool examples_come_back(const RunSpec& spec);
std::vector<std::string> task_names();
std::vector<std::string> model_names();  ///< presets of all families

}  // namespace syncopate::spec
