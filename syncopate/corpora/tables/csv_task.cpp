#include "syncopate/corpora/tables/csv_task.h"

#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/corpora/splits.h"
#include "syncopate/corpora/tables/labels.h"
#include "syncopate/corpora/tables/table_task.h"

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

size_t required(const TableFile& table, const std::string& name, const char* option) {
  if (name.empty()) {
    throw ConfigError("the task csv needs a {0} column: set {0} to one of the columns of {1}: {2}{3}", option,
                      table.path().string(), table.column_names(), table.separator_hint());
  }
  if (const auto found = table.find_column(name)) return *found;
  throw ConfigError("{} has no {} column \"{}\"; it has: {}{}", table.path().string(), option, name,
                    table.column_names(), table.separator_hint());
}

Columns columns_of(const TableFile& table, const TextSource& source, bool need_labels) {
  Columns columns;
  columns.text = required(table, source.text, "text");
  if (!source.text_pair.empty()) columns.pair = required(table, source.text_pair, "text_pair");
  columns.label = need_labels ? required(table, source.label, "label") : table.find_column(source.label);
  return columns;
}

SplitFiles csv_splits(const std::filesystem::path& path, Purpose purpose) {
  require_data(path, "a folder with train.csv and test.csv, or a single file,");
  return find_splits(path, csv_endings(), purpose);
}

class CsvReader : public TableTaskReader {
 public:
  CsvReader(const TextSource& source, const SplitFiles& files, Purpose purpose)
      : TableTaskReader(files.one_file && purpose == Purpose::kTrain),
        source_(source),
        need_labels_(purpose != Purpose::kPredict),
        training_(purpose == Purpose::kTrain) {
    set_labels(source.labels);
    // The training file first: its labels are the ones that count.
    if (!files.train.empty()) look_at(files.train, Split::kTrain, true);
    look_at(files.test, of_test_file(), need_labels_);
    found_.labels = labels_;
    if (left_out() > 0) found_.notes.push_back(fmt::format("{} rows without text were skipped", left_out()));
    finish(source.path, purpose);
  }

 private:
  /// While the first reading of a file finds out which labels there are.
  struct Learning {
    LabelsFound found;
    int64_t without_label = 0;  ///< the line of the first row without one; 0: none
  };

  void look_at(const std::filesystem::path& path, Split split, bool labels_needed) {
    const TableFile table(path, TableColumns::form_of(path, /*quoted_tabs=*/true), source_.form);
    const Columns columns = columns_of(table, source_, labels_needed);
    std::optional<Learning> learning;
    if (labels_.empty() && columns.label) learning_ = &learning.emplace(Learning{LabelsFound(table)});
    const auto to_example = [this, columns](const TableFile& file, const TableFile::Row& row,
                                            TextExample& example) {
      return make(file, columns, row, example);
    };
    const int64_t examples = look({.table = table, .split = split, .example = to_example});
    if (learning) learned(table, *learning);
    if (examples == 0) {
      throw DataError("{} has no text in the column \"{}\"; choose another text column", path.string(),
                      source_.text);
    }
  }

  void learned(const TableFile& table, const Learning& learning) {
    learning_ = nullptr;
    set_labels(learning.found.in_order());
    if (training_) {
      const auto warnings = learning.found.check();
      found_.notes.insert(found_.notes.end(), warnings.begin(), warnings.end());
    }
    if (learning.without_label > 0) refuse_without_label(table, learning.without_label);
    renumber_labels(learning.found.places());
  }

  bool make(const TableFile& table, const Columns& columns, const TableFile::Row& row, TextExample& example) {
    example.a = row.cells[columns.text];
    example.b = columns.pair ? row.cells[*columns.pair] : std::string_view();
    const std::string_view label = columns.label ? row.cells[*columns.label] : std::string_view();
    if (learning_ != nullptr) example.label = learning_->found.add(label, row.line);
    // To predict, every row has its answer: the answers' numbers are the rows'.
    if (need_labels_ && trim(example.a).empty() && trim(example.b).empty()) return false;
    if (learning_ == nullptr) {
      example.label = columns.label ? number_of(table, row.line, label) : -1;
    } else if (example.label < 0 && need_labels_ && learning_->without_label == 0) {
      learning_->without_label = row.line;
    }
    return true;
  }

  void set_labels(std::vector<std::string> labels) {
    labels_ = std::move(labels);
    numbers_.clear();
    for (size_t i = 0; i < labels_.size(); ++i) numbers_.emplace(labels_[i], static_cast<int64_t>(i));
  }

  int64_t number_of(const TableFile& table, int64_t line, std::string_view label) const {
    const auto found = numbers_.find(label);
    if (found != numbers_.end()) return found->second;
    if (!need_labels_) return -1;
    if (label.empty()) refuse_without_label(table, line);
    throw DataError(
        "{}: the label \"{}\" is not among those trained on ({}); correct it, or train on rows that have it",
        table.where(line), label.substr(0, 60), shown_labels());
  }

  [[noreturn]] static void refuse_without_label(const TableFile& table, int64_t line) {
    throw DataError("{}: the label is empty; fill it in or remove the row", table.where(line));
  }

  std::string shown_labels() const {
    constexpr size_t kShown = 20;
    if (labels_.size() <= kShown) return fmt::format("{}", fmt::join(labels_, ", "));
    return fmt::format("{}, ...", fmt::join(labels_.begin(), labels_.begin() + kShown, ", "));
  }

  const TextSource source_;
  const bool need_labels_, training_;
  Learning* learning_ = nullptr;
  std::vector<std::string> labels_;
  std::map<std::string, int64_t, std::less<>> numbers_;
};

}  // namespace

std::vector<std::filesystem::path> csv_files(const std::filesystem::path& path, Purpose purpose) {
  return csv_splits(path, purpose).all();
}

std::unique_ptr<const TextTaskReader> open_csv(const TextSource& source, Purpose purpose) {
  return std::make_unique<const CsvReader>(source, csv_splits(source.path, purpose), purpose);
}

}  // namespace syncopate::corpora
