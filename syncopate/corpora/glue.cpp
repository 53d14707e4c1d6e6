#include "syncopate/corpora/glue.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/table.h"

namespace syncopate::corpora {
namespace {

const std::vector<std::string>& endings() {
  static const std::vector<std::string> kEndings{".tsv", ".csv", ".jsonl", ".json"};
  return kEndings;
}

std::optional<size_t> label_column(const GlueFormat& format, const Table& table, bool needed) {
  for (const std::string& name : format.label_columns) {
    if (const auto found = table.find_column(name)) return found;
  }
  if (needed) return table.column("label");  // which says that it is missing
  return std::nullopt;
}

/// The file's examples behind those in `into`; counts the rows left out in `skipped`.
void read_examples(const GlueFormat& format, const std::filesystem::path& path, bool need_labels,
                   std::vector<TextExample>& into, int64_t& skipped) {
  const Table table(path, Table::form_of(path, /*quoted_tabs=*/false));
  const size_t first = table.column(format.first);
  const bool paired = !format.second.empty();
  const size_t second = paired ? table.column(format.second) : 0;
  const std::optional<size_t> label = label_column(format, table, need_labels);
  into.reserve(into.size() + table.rows());
  const size_t before = into.size();
  for (size_t row = 0; row < table.rows(); ++row) {
    TextExample example{.a = std::string(table.cell(row, first)), .b = {}, .label = -1};
    if (paired) example.b = table.cell(row, second);
    if (label) {
      const std::string_view name = table.cell(row, *label);
      const auto found = std::find(format.labels.begin(), format.labels.end(), name);
      if (found != format.labels.end()) {
        example.label = found - format.labels.begin();
      } else if (need_labels) {
        if (!format.no_label.empty() && name == format.no_label) {
          ++skipped;
          continue;
        }
        throw DataError("{}: the label \"{}\" is not one of {}'s: {}", table.where(row), name.substr(0, 60),
                        format.name, fmt::join(format.labels, ", "));
      }
    }
    into.push_back(std::move(example));
  }
  if (into.size() == before) {
    throw DataError("{} has no row with a gold label; give a file with labels", path.string());
  }
}

/// The files of a test split in parts ("dev_matched"); empty where the folder lacks one of them.
std::vector<std::filesystem::path> part_files(const GlueFormat& format, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  if (format.parts.empty()) return found;
  const auto files = files_with_ending(folder, endings());
  for (const char* split : {"dev_", "validation_"}) {
    found.clear();
    for (const std::string& part : format.parts) {
      if (const auto file = find_named(files, split + part)) found.push_back(*file);
    }
    if (found.size() == format.parts.size()) return found;
  }
  found.clear();
  return found;
}

}  // namespace

const std::vector<GlueFormat>& glue_formats() {
  static const std::vector<GlueFormat> kFormats{
      {"rte", "sentence1", "sentence2", {"entailment", "not_entailment"}, {"label"}},
      {"sst2", "sentence", "", {"0", "1"}, {"label"}},
      {"mnli",
       "sentence1",
       "sentence2",
       {"entailment", "neutral", "contradiction"},
       {"gold_label", "label"},
       "-",
       {"matched", "mismatched"}},
  };
  return kFormats;
}

TextTask load_glue(const GlueFormat& format, const std::filesystem::path& path, Purpose purpose) {
  require_data(path, "a folder with train.tsv and dev.tsv, or a single file,");
  TextTask task{.name = format.name, .labels = format.labels, .train = {}, .test = {}};
  const bool need_labels = purpose != Purpose::kPredict;
  int64_t skipped = 0;
  std::error_code unreadable;  // a folder that cannot be looked into is reported by what follows
  const bool folder = std::filesystem::is_directory(path, unreadable);
  if (const auto parts = folder ? part_files(format, path) : std::vector<std::filesystem::path>{};
      !parts.empty()) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto begin = static_cast<int64_t>(task.test.size());
      read_examples(format, parts[i], need_labels, task.test, skipped);
      task.parts.push_back({format.parts[i], begin, static_cast<int64_t>(task.test.size())});
    }
    if (purpose == Purpose::kTrain) {
      read_examples(format, find_training_file(path, endings()), true, task.train, skipped);
    }
  } else {
    const SplitFiles files = find_splits(path, endings(), purpose);
    read_examples(format, files.test, need_labels, task.test, skipped);
    if (!files.train.empty()) read_examples(format, files.train, true, task.train, skipped);
    if (files.one_file && purpose == Purpose::kTrain) hold_out_of_one_file(path, task);
  }
  if (skipped > 0) task.notes.push_back(fmt::format("{} rows without a gold label were skipped", skipped));
  return task;
}

}  // namespace syncopate::corpora
