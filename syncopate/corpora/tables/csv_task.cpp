#include "syncopate/corpora/csv_task.h"

#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/labels.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/table.h"

namespace syncopate::corpora {
namespace {

const std::vector<std::string>& csv_endings() {
  static const std::vector<std::string> kEndings{".csv", ".tsv", ".jsonl", ".json"};
  return kEndings;
}

struct Columns {
  size_t text = 0;
  std::optional<size_t> pair;
  std::optional<size_t> label;
};

size_t required(const Table& table, const std::filesystem::path& path, const std::string& name,
                const char* option) {
  if (name.empty()) {
    throw ConfigError("the task csv needs a {0} column: set {0} to one of the columns of {1}: {2}{3}", option,
                      path.string(), table.column_names(), table.separator_hint());
  }
  if (const auto found = table.find_column(name)) return *found;
  throw ConfigError("{} has no {} column \"{}\"; it has: {}{}", path.string(), option, name,
                    table.column_names(), table.separator_hint());
}

Columns columns_of(const Table& table, const std::filesystem::path& path, const TextSource& source,
                   bool need_labels) {
  Columns columns;
  columns.text = required(table, path, source.text, "text");
  if (!source.text_pair.empty()) columns.pair = required(table, path, source.text_pair, "text_pair");
  if (need_labels) {
    columns.label = required(table, path, source.label, "label");
  } else {
    columns.label = table.find_column(source.label);
  }
  return columns;
}

class CsvReader {
 public:
  CsvReader(const TextSource& source, Purpose purpose)
      : source_(source), need_labels_(purpose != Purpose::kPredict), training_(purpose == Purpose::kTrain) {
    set_labels(source.labels);
  }

  std::vector<TextExample> read(const std::filesystem::path& path, bool labels_needed) {
    const Table table(path, Table::form_of(path, /*quoted_tabs=*/true), source_.form);
    notes_.insert(notes_.end(), table.notes().begin(), table.notes().end());
    const Columns columns = columns_of(table, path, source_, labels_needed);
    if (labels_.empty() && columns.label) {
      set_labels(labels_in(table, *columns.label));
      if (training_) {
        const auto warnings = check_labels(table, *columns.label, labels_);
        notes_.insert(notes_.end(), warnings.begin(), warnings.end());
      }
    }
    std::vector<TextExample> examples;
    examples.reserve(table.rows());
    for (size_t row = 0; row < table.rows(); ++row) {
      TextExample example{.a = std::string(table.cell(row, columns.text)), .b = {}, .label = -1};
      if (columns.pair) example.b = table.cell(row, *columns.pair);
      // To predict, every row has its answer: the answers' numbers are the rows'.
      if (need_labels_ && trim(example.a).empty() && trim(example.b).empty()) {
        ++skipped_;
        continue;
      }
      if (columns.label) example.label = number_of(table, row, *columns.label);
      examples.push_back(std::move(example));
    }
    if (examples.empty()) {
      throw DataError("{} has no text in the column \"{}\"; choose another text column", path.string(),
                      source_.text);
    }
    return examples;
  }

  const std::vector<std::string>& labels() const { return labels_; }
  const std::vector<std::string>& notes() const { return notes_; }
  int64_t skipped() const { return skipped_; }

 private:
  void set_labels(std::vector<std::string> labels) {
    labels_ = std::move(labels);
    numbers_.clear();
    for (size_t i = 0; i < labels_.size(); ++i) numbers_.emplace(labels_[i], static_cast<int64_t>(i));
  }

  int64_t number_of(const Table& table, size_t row, size_t column) const {
    const std::string_view label = table.cell(row, column);
    const auto found = numbers_.find(label);
    if (found != numbers_.end()) return found->second;
    if (!need_labels_) return -1;
    if (label.empty()) {
      throw DataError("{}: the label is empty; fill it in or remove the row", table.where(row));
    }
    throw DataError(
        "{}: the label \"{}\" is not among those trained on ({}); correct it, or train on rows that have it",
        table.where(row), label.substr(0, 60), shown_labels());
  }

  std::string shown_labels() const {
    constexpr size_t kShown = 20;
    if (labels_.size() <= kShown) return fmt::format("{}", fmt::join(labels_, ", "));
    return fmt::format("{}, ...", fmt::join(labels_.begin(), labels_.begin() + kShown, ", "));
  }

  const TextSource& source_;
  const bool need_labels_, training_;
  std::vector<std::string> labels_, notes_;
  std::map<std::string, int64_t, std::less<>> numbers_;
  int64_t skipped_ = 0;
};

SplitFiles csv_splits(const std::filesystem::path& path, Purpose purpose) {
  require_data(path, "a folder with train.csv and test.csv, or a single file,");
  return find_splits(path, csv_endings(), purpose);
}

}  // namespace

std::vector<std::filesystem::path> csv_files(const std::filesystem::path& path, Purpose purpose) {
  return csv_splits(path, purpose).all();
}

TextTask load_csv(const TextSource& source, Purpose purpose) {
  const bool need_labels = purpose != Purpose::kPredict;
  const SplitFiles files = csv_splits(source.path, purpose);
  CsvReader reader(source, purpose);
  TextTask task{.name = "csv", .labels = {}, .train = {}, .test = {}};
  // The training file first: its labels are the ones that count.
  if (!files.train.empty()) task.train = reader.read(files.train, true);
  task.test = reader.read(files.test, need_labels);
  task.labels = reader.labels();
  if (files.one_file && purpose == Purpose::kTrain) hold_out_of_one_file(source.path, task);
  task.notes = reader.notes();
  if (purpose == Purpose::kTrain) task.training_notes.push_back(class_counts(task));
  if (reader.skipped() > 0)
    task.notes.push_back(fmt::format("{} rows without text were skipped", reader.skipped()));
  return task;
}

}  // namespace syncopate::corpora
