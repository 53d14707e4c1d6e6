#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syncopate/lab/experiment.h"
#include "syncopate/record/record.h"

// The choice of a rate (or another number) for one arm, by scores on the validation split alone.
namespace syncopate::lab {

struct Trial {
  double value = 0;
  std::vector<int64_t> seeds{};
  std::vector<std::optional<double>> scores{};  ///< one for each seed; none: diverged or failed
  std::vector<double> losses{};                 ///< beside the scores; NaN without one
  bool refined = false;                         ///< between values of the file's list

  /// The mean over all seeds; none where one of them has no score: a rate that may diverge is no rate.
  std::optional<double> mean() const;
  double mean_loss() const;
};

struct Tuning {
  size_t arm = 0;
  std::string setting;
  std::string measure{};         ///< by which they were judged; empty: no run came to a score
  std::vector<Trial> trials{};   ///< by ascending value
  std::optional<double> best{};  ///< none: nothing to choose from
  int64_t failed = 0;            ///< runs that neither ended nor diverged: killed, or with an error
  std::string edge{};            ///< "low" or "high": the best is the first or last of those tried

  Trial& at(double value);  ///< the trial of that value, new where there is none
  /// Sets best and edge. Of equal scores (few examples, few steps) the lower loss is better.
  void choose();
};

struct Score {
  std::string measure;
  double value = 0, loss = 0;
};
/// Of the validation split; none: the run has none.
std::optional<Score> validation_score(const record::RunRecord& record);
bool lower_is_better(const std::string& measure);

/// Values halfway (as ratios) between the best and its neighbours that were not tried, to three digits.
std::vector<double> finer_values(const Tuning& tuning);

}  // namespace syncopate::lab
