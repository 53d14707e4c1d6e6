#include "syncopate/corpora/glue.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/labels.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/table.h"

namespace syncopate::corpora {
namespace {

const std::vector<std::string>& glue_endings() {
  static const std::vector<std::string> kEndings{".tsv", ".csv", ".jsonl", ".json"};
  return kEndings;
}

std::optional<size_t> find_any(const Table& table, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto found = table.find_column(name)) return found;
  }
  return std::nullopt;
}

/// One of the columns; where none is there, the table says that the first is missing.
size_t any_column(const Table& table, const std::vector<std::string>& names) {
  const auto found = find_any(table, names);
  return found ? *found : table.column(names.front());
}

/// The number of a label by its name or as Hugging Face writes it: that number itself.
std::optional<int64_t> label_number(const GlueFormat& format, std::string_view name) {
  const auto found = std::find(format.labels.begin(), format.labels.end(), name);
  if (found != format.labels.end()) return found - format.labels.begin();
  const auto number = parse_integer(name);
  if (number && *number >= 0 && *number < static_cast<int64_t>(format.labels.size())) return number;
  return std::nullopt;
}

bool says_none(std::string_view label) { return label == "-" || label == "-1"; }

/// Reads files one after the other and notes what was left out.
class GlueReader {
 public:
  GlueReader(const GlueFormat& format, const FileForm& form) : format_(format), form_(form) {}

  /// The file's examples, behind those in `into`.
  void read(const std::filesystem::path& path, bool need_labels, std::vector<TextExample>& into) {
    const Table table(path, Table::form_of(path, /*quoted_tabs=*/false), form_);
    notes_.insert(notes_.end(), table.notes().begin(), table.notes().end());
    const size_t first = any_column(table, format_.first);
    const bool paired = !format_.second.empty();
    const size_t second = paired ? any_column(table, format_.second) : 0;
    std::optional<size_t> label = find_any(table, format_.label_columns);
    if (!label && need_labels) label = table.column("label");  // which says that it is missing
    into.reserve(into.size() + table.rows());
    const size_t before = into.size();
    for (size_t row = 0; row < table.rows(); ++row) {
      TextExample example{.a = std::string(table.cell(row, first)), .b = {}, .label = -1};
      if (paired) example.b = table.cell(row, second);
      if (label) {
        const std::string_view name = table.cell(row, *label);
        const auto number = label_number(format_, name);
        if (!number && need_labels && says_none(name)) {
          ++skipped_;
          continue;
        }
        if (!number && need_labels) {
          throw DataError("{}: the label \"{}\" is not one of {}'s: {}", table.where(row), name.substr(0, 60),
                          format_.name, fmt::join(format_.labels, ", "));
        }
        example.label = number.value_or(-1);
      }
      into.push_back(std::move(example));
    }
    if (into.size() == before) {
      throw DataError("{} has no row with a gold label; give a file with labels", path.string());
    }
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> all = notes_;
    if (skipped_ > 0) all.push_back(fmt::format("{} rows without a gold label were skipped", skipped_));
    return all;
  }

 private:
  const GlueFormat& format_;
  const FileForm& form_;
  std::vector<std::string> notes_;
  int64_t skipped_ = 0;
};

/// The files of a test split in parts ("dev_matched"); empty where the folder lacks one of them.
std::vector<std::filesystem::path> part_files(const GlueFormat& format, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  if (format.parts.empty()) return found;
  const auto files = files_with_ending(folder, glue_endings());
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

/// Where a task's splits lie.
struct GlueSplits {
  SplitFiles files;                          ///< where the test split is one file
  std::vector<std::filesystem::path> parts;  ///< of the test split, else
  std::filesystem::path train;               ///< beside parts; empty unless for training
};

GlueSplits glue_splits(const GlueFormat& format, const std::filesystem::path& path, Purpose purpose) {
  require_data(path, "a folder with train.tsv and dev.tsv, or a single file,");
  GlueSplits found;
  std::error_code unreadable;  // a folder that cannot be looked into is reported by what follows
  if (std::filesystem::is_directory(path, unreadable)) found.parts = part_files(format, path);
  if (found.parts.empty()) {
    found.files = find_splits(path, glue_endings(), purpose);
  } else if (purpose == Purpose::kTrain) {
    found.train = find_training_file(path, glue_endings());
  }
  return found;
}

}  // namespace

const std::vector<GlueFormat>& glue_formats() {
  static const std::vector<std::string> kFirst{"sentence1", "premise"}, kSecond{"sentence2", "hypothesis"};
  static const std::vector<GlueFormat> kFormats{
      {"rte", kFirst, kSecond, {"entailment", "not_entailment"}, {"label"}},
      {"sst2", {"sentence"}, {}, {"0", "1"}, {"label"}},
      {"mnli",
       kFirst,
       kSecond,
       {"entailment", "neutral", "contradiction"},
       {"gold_label", "label"},
       {"matched", "mismatched"}},
  };
  return kFormats;
}

std::vector<std::filesystem::path> glue_files(const GlueFormat& format, const std::filesystem::path& path,
                                              Purpose purpose) {
  const GlueSplits splits = glue_splits(format, path, purpose);
  if (splits.parts.empty()) return splits.files.all();
  std::vector<std::filesystem::path> all = splits.parts;
  if (!splits.train.empty()) all.push_back(splits.train);
  return all;
}

TextTask load_glue(const GlueFormat& format, const std::filesystem::path& path, Purpose purpose,
                   const FileForm& form) {
  const GlueSplits splits = glue_splits(format, path, purpose);
  TextTask task{.name = format.name, .labels = format.labels, .train = {}, .test = {}};
  const bool need_labels = purpose != Purpose::kPredict;
  GlueReader reader(format, form);
  if (!splits.parts.empty()) {
    for (size_t i = 0; i < splits.parts.size(); ++i) {
      const auto begin = static_cast<int64_t>(task.test.size());
      reader.read(splits.parts[i], need_labels, task.test);
      task.parts.push_back({format.parts[i], begin, static_cast<int64_t>(task.test.size())});
    }
    if (!splits.train.empty()) reader.read(splits.train, true, task.train);
  } else {
    const SplitFiles& files = splits.files;
    reader.read(files.test, need_labels, task.test);
    if (!files.train.empty()) reader.read(files.train, true, task.train);
    if (files.one_file && purpose == Purpose::kTrain) hold_out_of_one_file(path, task);
  }
  task.notes = reader.notes();
  if (purpose == Purpose::kTrain) task.training_notes.push_back(class_counts(task));
  return task;
}

}  // namespace syncopate::corpora
