#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/rng.h"
#include "syncopate/base/text.h"
#include "syncopate/data/subset.h"
#include "syncopate/record/run_folder.h"
#include "syncopate/spec/tasks.h"
#include "syncopate/tasks/score_file.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"

namespace syncopate::tasks {
namespace {

constexpr const char* kTokenizerConfig = "tokenizer_config.json";

using Make = TaskSetup (*)(const spec::RunSpec& spec, comm::Group& group);

/// What holds for every family, before its data are loaded.
template <Make make>
TaskSetup checked(const spec::RunSpec& spec, comm::Group& group) {
  const std::string path = spec.validation().path;
  std::error_code unreadable;  // reading says why
  if (!path.empty() && !std::filesystem::exists(path, unreadable)) {
    throw ConfigError("--validation is neither a share such as 0.05 nor a file or folder: {}", path);
  }
  return make(spec, group);
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies{
      {"classification", checked<make_classification>, score_classification, score_text_labels},
      {"masked-words", checked<make_masked_words>, score_masked_words, nullptr},
      {"questions", checked<make_questions>, score_questions, score_answers},
      {"next-words", checked<make_next_words>, score_next_words, nullptr},
      {"images", checked<make_images>, score_images, score_image_labels},
  };
  return kFamilies;
}

const Family& family_of(const std::string& task) {
  const std::string_view name = spec::task_family(task).name;
  const auto found = std::find_if(families().begin(), families().end(),
                                  [&](const Family& family) { return family.name == name; });
  check(found != families().end(), "every family of tasks is made somewhere");
  return *found;
}

std::string model_folder_of(const std::string& path) {
  const record::RunFolder run{path};
  if (std::filesystem::is_directory(run.model())) return run.model().string();
  if (std::filesystem::exists(run.spec()) && !std::filesystem::exists(run.path / "config.json")) {
    throw DataError(
        "the run in {0} has not finished and has no model yet; continue it with train --resume --out {0}",
        path);
  }
  return path;
}

Start find_start(const spec::RunSpec& spec) {
  if (!spec.model.init_from.empty()) {
    if (!std::filesystem::is_directory(spec.model.init_from)) {
      throw ConfigError("--init-from {} is neither a run's folder nor a model folder; check the path",
                        spec.model.init_from);
    }
    return {.folder = model_folder_of(spec.model.init_from), .fresh_head = true};
  }
  const std::string& name = spec.model.name;
  const auto& presets = spec::task_family(spec.task.name).models;
  if (std::find(presets.begin(), presets.end(), name) != presets.end()) return {};
  if (std::filesystem::is_directory(name)) return {.folder = model_folder_of(name), .fresh_head = false};
  const std::vector<std::string> all = spec::model_names();
  if (std::find(all.begin(), all.end(), name) != all.end()) {
    throw ConfigError("the model {} does not learn the task {}; choose one of: {}", name, spec.task.name,
                      fmt::join(presets, ", "));
  }
  const auto near = nearest(name, presets);
  throw ConfigError(
      "there is no model \"{}\": neither a preset nor a folder{}", name,
      near ? fmt::format("; did you mean \"{}\"?", *near)
           : fmt::format("; give a Hugging Face folder or one of: {}", fmt::join(presets, ", ")));
}

void require_same_shape(const spec::RunSpec& spec, bool same) {
  if (same || spec.model.name.empty() || spec.model.init_from.empty()) return;
  throw ConfigError("the model of --init-from {} is not a {}; leave --model out", spec.model.init_from,
                    spec.model.name);
}

corpora::Purpose purpose_of(const spec::ScoreSpec& spec, bool predict) {
  if (predict) return corpora::Purpose::kPredict;
  // The split of training, whose rest the model has seen.
  const bool one_file = spec.held_out && std::filesystem::is_regular_file(spec.data);
  return one_file ? corpora::Purpose::kTrain : corpora::Purpose::kEvaluate;
}

uint64_t start_seed(const spec::RunSpec& spec) {
  return mix_key(static_cast<uint64_t>(spec.train.seed), 0x1417);
}

int64_t trained_length(const std::filesystem::path& folder, int64_t usual, int64_t most) {
  const std::filesystem::path path = folder / kTokenizerConfig;
  if (!std::filesystem::exists(path)) return std::min(usual, most);
  const auto json = nlohmann::json::parse(read_file(path, "tokenizer settings"), nullptr, false);
  if (!json.is_object() || !json.contains("model_max_length") ||
      !json["model_max_length"].is_number_integer())
    return std::min(usual, most);
  return std::clamp<int64_t>(json["model_max_length"].get<int64_t>(), 4, most);
}

void save_trained_length(const std::filesystem::path& folder, int64_t max_length) {
  const std::filesystem::path path = folder / kTokenizerConfig;
  auto json = nlohmann::ordered_json::object();
  if (std::filesystem::exists(path))
    json = nlohmann::ordered_json::parse(read_file(path, "tokenizer settings"));
  json["model_max_length"] = max_length;
  write_file_atomically(path, json.dump(2) + "\n");
}

void require_length_fits(int64_t max_length, int64_t positions, const std::string& model) {
  if (max_length <= positions) return;
  throw ConfigError("--max-length {} is more than the {} positions of {}; make it smaller", max_length,
                    positions, model);
}

int64_t scored_length(const spec::ScoreSpec& spec, int64_t positions) {
  const int64_t length = spec.max_length > 0
                             ? spec.max_length
                             : trained_length(spec.model, spec::task_family(spec.task).max_length, positions);
  require_length_fits(length, positions, spec.model);
  return length;
}

double validation_share(const spec::RunSpec& spec, size_t size) {
  const auto all = static_cast<double>(size), limit = static_cast<double>(spec.task.limit);
  return spec.validation().share * (limit > 0 && limit < all ? limit / all : 1);
}

std::string validation_note(size_t held_out, size_t of, const std::string& unit) {
  return fmt::format("{} of {} {} are held out of training as the validation split, by their content",
                     held_out, of, unit);
}

void require_other_than_test(const std::vector<uint64_t>& validation, const std::vector<uint64_t>& test) {
  std::vector<uint64_t> chosen_by = validation;
  std::sort(chosen_by.begin(), chosen_by.end());
  for (const uint64_t key : test) {
    if (!std::binary_search(chosen_by.begin(), chosen_by.end(), key)) return;
  }
  throw ConfigError(
      "--validation {}; give another file or a share such as 0.05",
      validation.size() == test.size() ? "is the test split itself" : "holds the whole test split");
}

std::string fingerprint_of(const std::vector<std::string>& words) {
  return hexadecimal(checksum(fmt::format("{}", fmt::join(words, "\n"))));
}

std::shared_ptr<const data::Dataset> limited(std::shared_ptr<const data::Dataset> whole,
                                             const spec::RunSpec& spec) {
  const int64_t size = whole->size(), limit = spec.task.limit;
  if (limit == 0 || limit >= size) return whole;
  return std::make_shared<data::Subset>(whole, chosen_examples(size, limit, spec.train.seed));
}

std::shared_ptr<const data::Dataset> sampled(std::shared_ptr<const data::Dataset> whole,
                                             const spec::RunSpec& spec) {
  const int64_t size = whole->size(), limit = spec.task.test_limit;
  if (limit == 0 || limit >= size) return whole;
  return std::make_shared<data::Subset>(whole, sampled_examples(size, limit));
}

std::vector<int64_t> sampled_examples(int64_t size, int64_t limit) {
  std::vector<int64_t> chosen(static_cast<size_t>(size));
  std::iota(chosen.begin(), chosen.end(), int64_t{0});
  if (limit <= 0 || limit >= size) return chosen;
  // mix is a bijection: no two numbers have the same key.
  std::sort(chosen.begin(), chosen.end(), [](int64_t a, int64_t b) {
    return mix(static_cast<uint64_t>(a)) < mix(static_cast<uint64_t>(b));
  });
  chosen.resize(static_cast<size_t>(limit));
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int64_t> chosen_examples(int64_t size, int64_t limit, int64_t seed) {
  std::vector<int64_t> chosen = permutation(size, mix_key(static_cast<uint64_t>(seed), 0x5ab5e7));
  if (limit > 0 && limit < size) chosen.resize(static_cast<size_t>(limit));
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace syncopate::tasks
