#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "syncopate/record/record.h"
#include "syncopate/report/analyse.h"
#include "tests/support/support.h"

namespace syncopate::report {

/// A run that a test makes up. As it is, honest: 100 updates of 32 examples, a loss that falls.
struct MadeRun {
  std::string arm{}, name{}, kind = "row", control_of{}, state = "done", message{};
  int64_t seed = 1;
  bool alone = true, other_version = false;
  record::RunRecord record{};
  std::vector<record::EvalRecord> evals{};
  std::vector<double> losses{};                   ///< of its steps
  std::map<std::string, std::string> settings{};  ///< beside strategy, codec, workers, seed and rate
};

/// A folder of such runs with its sweep.json.
class MadeSweep {
 public:
  /// Runs of one arm, a seed from 1 on for each accuracy; `speed` is in examples per second.
  void arm(const std::string& name, const std::string& strategy, int64_t workers,
           const std::vector<double>& accuracies, double speed);
  /// Those of the arm with this name.
  std::vector<MadeRun*> runs_of(const std::string& name);

  void write();  ///< everything, anew
  Results analysed();
  std::filesystem::path folder_of(size_t run) const { return folder_.path() / ("run" + std::to_string(run)); }
  const std::filesystem::path& path() const { return folder_.path(); }

  std::vector<MadeRun> runs{};
  nlohmann::ordered_json sweep{};  ///< overrides fields of sweep.json
  bool planned = true;             ///< false: writes no sweep.json

 private:
  test::TempDir folder_;
};

/// Of an arm; fails the test where it is not there.
const ArmResult& arm_named(const Results& results, const std::string& name);
const Check& check_of(const ArmResult& arm, const std::string& code);
std::string flag_text(const ArmResult& arm, const std::string& code);  ///< empty: it has none

}  // namespace syncopate::report
