#include "syncopate/corpora/tables/glue.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/tables/table_task.h"

namespace syncopate::corpora {
namespace {

const std::vector<std::string>& glue_endings() {
  static const std::vector<std::string> kEndings{".tsv", ".csv", ".jsonl", ".json"};
  return kEndings;
}

std::optional<size_t> find_any(const TableFile& table, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto found = table.find_column(name)) return found;
  }
  return std::nullopt;
}

/// One of the columns; where none is there, the table says that the first is missing.
size_t any_column(const TableFile& table, const std::vector<std::string>& names) {
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

class GlueReader : public TableTaskReader {
 public:
  GlueReader(const GlueFormat& format, const std::filesystem::path& path, const GlueSplits& splits,
             Purpose purpose, FileForm form)
      : TableTaskReader(splits.files.one_file && purpose == Purpose::kTrain),
        format_(format),
        form_(std::move(form)) {
    const bool need_labels = purpose != Purpose::kPredict;
    found_.labels = format.labels;
    for (size_t i = 0; i < splits.parts.size(); ++i) {
      const int64_t begin = found_.test;
      look_at(splits.parts[i], Split::kTest, need_labels);
      found_.parts.push_back({format.parts[i], begin, found_.test});
    }
    const SplitFiles& files = splits.files;
    if (splits.parts.empty()) look_at(files.test, of_test_file(), need_labels);
    for (const std::filesystem::path& train : {splits.train, files.train}) {
      if (!train.empty()) look_at(train, Split::kTrain, true);
    }
    if (left_out() > 0)
      found_.notes.push_back(fmt::format("{} rows without a gold label were skipped", left_out()));
    finish(path, purpose);
  }

 private:
  struct Columns {
    size_t first = 0;
    std::optional<size_t> second;
    std::optional<size_t> label;
    bool need_labels = true;
  };

  void look_at(const std::filesystem::path& path, Split split, bool need_labels) {
    const TableFile table(path, TableColumns::form_of(path, /*quoted_tabs=*/false), form_);
    Columns columns{.first = any_column(table, format_.first),
                    .second = std::nullopt,
                    .label = find_any(table, format_.label_columns),
                    .need_labels = need_labels};
    if (!format_.second.empty()) columns.second = any_column(table, format_.second);
    if (!columns.label && need_labels)
      columns.label = table.column("label");  // which says that it is missing
    const auto to_example = [this, columns](const TableFile& file, const TableFile::Row& row,
                                            TextExample& example) {
      return make(file, columns, row, example);
    };
    if (look({.table = table, .split = split, .example = to_example}) == 0)
      throw DataError("{} has no row with a gold label; give a file with labels", path.string());
  }

  bool make(const TableFile& table, const Columns& columns, const TableFile::Row& row,
            TextExample& example) const {
    example.a = row.cells[columns.first];
    example.b = columns.second ? row.cells[*columns.second] : std::string_view();
    example.label = -1;
    if (!columns.label) return true;
    const std::string_view name = row.cells[*columns.label];
    const auto number = label_number(format_, name);
    if (!number && columns.need_labels) {
      if (says_none(name)) return false;
      throw DataError("{}: the label \"{}\" is not one of {}'s: {}", table.where(row.line),
                      name.substr(0, 60), format_.name, fmt::join(format_.labels, ", "));
    }
    example.label = number.value_or(-1);
    return true;
  }

  const GlueFormat& format_;
  const FileForm form_;
};

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

std::unique_ptr<const TextTaskReader> open_glue(const GlueFormat& format, const std::filesystem::path& path,
                                                Purpose purpose, const FileForm& form) {
  return std::make_unique<const GlueReader>(format, path, glue_splits(format, path, purpose), purpose, form);
}

}  // namespace syncopate::corpora
