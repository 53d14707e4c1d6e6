#include "syncopate/corpora/task.h"

#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/tables/csv_task.h"
#include "syncopate/corpora/tables/glue.h"
#include "syncopate/corpora/wordnet/hypernym.h"
#include "syncopate/corpora/wordnet/wordnet.h"

namespace syncopate::corpora {
namespace {

void require_path(const TextSource& source, const char* form) {
  if (source.path.empty()) {
    throw ConfigError("the task {} needs data: give a folder with {}, or a single file, as its data path",
                      source.task, form);
  }
}

/// A task that is not in tables.
std::optional<TextTask> load_wordnet(const TextSource& source, Purpose purpose) {
  if (source.task == "supersense") return load_supersense(source.path, purpose);
  if (source.task == "hypernym") return load_hypernym(source.path, purpose);
  return std::nullopt;
}

}  // namespace

std::vector<std::string> task_names() {
  std::vector<std::string> names{"supersense", "hypernym", "csv"};
  for (const GlueFormat& format : glue_formats()) names.push_back(format.name);
  return names;
}

std::unique_ptr<const TextTaskReader> open_task(const TextSource& source, Purpose purpose) {
  if (auto task = load_wordnet(source, purpose)) return reader_of(std::move(*task));
  if (source.task == "csv") {
    require_path(source, "train.csv and test.csv");
    return open_csv(source, purpose);
  }
  for (const GlueFormat& format : glue_formats()) {
    if (format.name != source.task) continue;
    require_path(source, "train.tsv and dev.tsv");
    return open_glue(format, source.path, purpose, source.form);
  }
  throw ConfigError("unknown task \"{}\"{}", source.task, suggestion(source.task, task_names()));
}

TextTask load_task(const TextSource& source, Purpose purpose) {
  if (auto task = load_wordnet(source, purpose)) return std::move(*task);
  return read_whole(*open_task(source, purpose), source.task);
}

std::optional<bool> reads_pairs(const TextSource& source) {
  for (const GlueFormat& format : glue_formats()) {
    if (format.name == source.task) return !format.second.empty();
  }
  if (source.task != "csv") return source.task == "hypernym";
  if (source.text.empty()) return std::nullopt;
  return !source.text_pair.empty();
}

std::vector<std::filesystem::path> files_of_task(const TextSource& source, Purpose purpose) {
  if (source.path.empty()) return {};
  if (source.task == "csv") return csv_files(source.path, purpose);
  for (const GlueFormat& format : glue_formats()) {
    if (format.name == source.task) return glue_files(format, source.path, purpose);
  }
  return {};
}

}  // namespace syncopate::corpora
