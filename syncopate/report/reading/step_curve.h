#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "syncopate/report/results.h"

namespace syncopate::report {

/// The loss of a run's steps, read from its steps.jsonl while the file grows.
class StepCurve {
 public:
  /// Reads the whole lines that came since the last call; true where there were any. A file that was replaced
  /// (a run that resumed) is read anew. Throws DataError with file and line where it is damaged.
  bool read(const std::filesystem::path& file);

  size_t size() const { return loss_.size(); }
  /// Examples and seconds of training until the end of the step with this number.
  double examples_at(int64_t step) const;
  double seconds_at(int64_t step) const;
  double seconds() const { return seconds_.empty() ? 0 : seconds_.back(); }
  double examples() const { return examples_.empty() ? 0 : examples_.back(); }
  int64_t last_step() const { return steps_.empty() ? 0 : steps_.back(); }
  /// Mean losses of the first and of the last tenth of the steps; NaN where there are none.
  double first_loss() const;
  double last_loss() const;
  /// The mean milliseconds and bytes sent of the last steps, some tens of them.
  double recent_ms() const;
  double recent_bytes() const;

  /// At most so many points, each the mean of the steps up to it; times are multiplied by `scale`.
  Curve thinned(size_t points, double scale) const;

 private:
  void add(std::string_view line, const std::filesystem::path& file);
  double mean_loss(size_t begin, size_t end) const;
  size_t find(int64_t step) const;
  size_t tenth() const;

  uint64_t inode_ = 0;
  uint64_t offset_ = 0;
  std::vector<int64_t> steps_;
  std::vector<double> examples_, seconds_, loss_;  ///< examples and seconds until then
  std::vector<float> bytes_;
};

}  // namespace syncopate::report
