#include "syncopate/data/glue.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/data/tsv.h"

namespace syncopate::data {
namespace {

std::vector<TextExample> read_examples(const GlueFormat& format, const std::filesystem::path& path,
                                       bool need_labels) {
  const Tsv table(path);
  const size_t first = table.column(format.first);
  const bool paired = !format.second.empty();
  const size_t second = paired ? table.column(format.second) : 0;
  const std::optional<size_t> label = need_labels ? table.column("label") : table.find_column("label");
  std::vector<TextExample> examples;
  examples.reserve(table.rows());
  for (size_t row = 0; row < table.rows(); ++row) {
    TextExample example{.a = std::string(table.cell(row, first)), .b = {}, .label = -1};
    if (paired) example.b = table.cell(row, second);
    if (label) {
      const auto found = std::find(format.labels.begin(), format.labels.end(), table.cell(row, *label));
      if (found != format.labels.end()) {
        example.label = found - format.labels.begin();
      } else if (need_labels) {
        throw DataError("{}: the label \"{}\" is not one of {}'s: {}", table.where(row),
                        table.cell(row, *label).substr(0, 60), format.name, fmt::join(format.labels, ", "));
      }
    }
    examples.push_back(std::move(example));
  }
  return examples;
}

}  // namespace

const std::vector<GlueFormat>& glue_formats() {
  static const std::vector<GlueFormat> kFormats{
      {"rte", "sentence1", "sentence2", {"entailment", "not_entailment"}},
      {"sst2", "sentence", "", {"0", "1"}},
  };
  return kFormats;
}

TextTask load_glue(const GlueFormat& format, const std::filesystem::path& path, Purpose purpose) {
  TextTask task{.name = format.name, .labels = format.labels, .train = {}, .test = {}};
  const bool need_labels = purpose != Purpose::kPredict;
  std::error_code unreadable;  // says no more than that the file cannot be used
  if (!std::filesystem::exists(path, unreadable)) {
    throw DataError("{} does not exist; give a folder with train.tsv and dev.tsv, or a file, with --data",
                    path.string());
  }
  if (std::filesystem::is_directory(path, unreadable)) {
    task.test = read_examples(format, path / "dev.tsv", need_labels);
    if (purpose == Purpose::kTrain) task.train = read_examples(format, path / "train.tsv", true);
    return task;
  }
  std::vector<TextExample> examples = read_examples(format, path, need_labels);
  if (purpose != Purpose::kTrain) {
    task.test = std::move(examples);
    return task;
  }
  if (examples.size() < 2) throw DataError("{} has one example, too few to train and test on", path.string());
  hold_out_tenth(std::move(examples), task);
  return task;
}

}  // namespace syncopate::data
