#include "syncopate/spec/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/spec/folder.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::spec {
namespace fs = std::filesystem;

RunSpec read_spec(const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? record::RunFolder{path}.spec() : path;
  const auto json = nlohmann::ordered_json::parse(read_file(file, "settings of a run"), nullptr, false);
  if (!json.is_object()) {
    throw DataError("{} does not hold the settings of a run; give a spec.json, or the folder of a run",
                    file.string());
  }
  auto settings = json;
  for (const char* note : kNotes) settings.erase(note);
  if (settings.empty()) {
    throw DataError("{} holds no settings; give a spec.json, or the folder of a run", file.string());
  }
  RunSpec spec;
  try {
    spec.fields().from_json(settings);
  } catch (const ConfigError& error) {
    throw DataError("{}: {}", file.string(), error.what());
  }
  return spec;
}

void prefer_given(RunSpec& spec, const std::vector<std::string>& given) {
  const auto alone = [&](const char* one, const char* rival) {
    const auto has = [&](const char* name) { return std::count(given.begin(), given.end(), name) > 0; };
    return has(one) && !has(rival);
  };
  if (alone("train.batch_size", "train.global_batch")) spec.train.global_batch = 0;
  if (alone("train.global_batch", "train.batch_size")) spec.train.batch_size = 0;
  if (alone("train.steps", "train.epochs")) spec.train.epochs = 0;
  if (alone("train.epochs", "train.steps")) spec.train.steps = 0;
  if (alone("model.name", "model.init_from")) spec.model.init_from.clear();
  if (alone("model.init_from", "model.name")) spec.model.name.clear();
}

std::optional<record::RunFolder> run_of_model(const fs::path& model) {
  if (record::RunFolder run{model}; fs::exists(run.spec())) return run;
  fs::path folder = fs::absolute(model).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();  // "runs/mine/model/"
  if (record::RunFolder run{folder.parent_path()}; run.model() == folder && fs::exists(run.spec()))
    return run;
  return std::nullopt;
}

void complete_from_run(ScoreSpec& spec, const std::function<bool(const std::string& flag)>& given,
                       bool predict) {
  const auto run = run_of_model(spec.model);
  if (!run) {
    if (!fs::is_directory(spec.model)) {
      throw DataError("there is no model folder {}; give the folder of a run, or a Hugging Face folder",
                      spec.model);
    }
    if (!given("task")) {
      throw ConfigError("{} does not lie in the folder of a run, which would name its task; give --task",
                        spec.model);
    }
    return;
  }
  const RunSpec trained = read_spec(run->path);
  const bool same_task = !given("task") || spec.task == trained.task.name;
  if (!same_task) return;  // its settings are another task's
  const auto take = [&](const char* flag, auto& mine, const auto& recorded) {
    if (!given(flag)) mine = recorded;
  };
  take("task", spec.task, trained.task.name);
  take("text", spec.columns.text, trained.task.text);
  take("text-pair", spec.columns.text_pair, trained.task.text_pair);
  take("label", spec.columns.label, trained.task.label);
  take("encoding", spec.columns.encoding, trained.task.encoding);
  take("separator", spec.columns.separator, trained.task.separator);
  take("max-length", spec.max_length, trained.task.max_length);
  take("stride", spec.stride, trained.task.stride);
  take("documents", spec.documents, trained.task.documents);
  take("mask-rate", spec.mask_rate, trained.task.mask_rate);
  take("whole-words", spec.whole_words, trained.task.whole_words);
  take("seed", spec.seed, trained.train.seed);
  const bool own_texts = predict && (!spec.prompts.empty() || task_family(spec.task).answers_lines);
  if (!given("data") && !own_texts) {
    spec.data = trained.task.data;
    spec.held_out = !predict;
    if (spec.note && !predict && trained.task.test_limit > 0) {
      spec.note(fmt::format("the run tested on {} of the examples (task.test_limit); this takes all",
                            trained.task.test_limit));
    }
    if (spec.note && !spec.data.empty())
      spec.note(fmt::format("the data are those of the run: {}", spec.data));
  }
}

}  // namespace syncopate::spec
