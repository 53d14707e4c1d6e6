#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncopate/record/record.h"
#include "syncopate/report/statistics.h"

// A comparison, analysed: what results.json holds, the page shows and the tables print. Numbers are raw
// (fractions, seconds, bytes, examples), NaN where unknown. Every text is UTF-8.
namespace syncopate::report {

/// What runs are judged by.
struct Measure {
  std::string name{}, label{};  ///< no name: nothing was measured
  bool percent = false;         ///< a fraction, for people in per cent
  bool higher_is_better = true;
  std::string split = "test";
};

struct Target {
  std::string measure{};
  double value = 0;
};

struct Note {
  std::string code{}, text{};
  bool warning = true;  ///< else a plain remark
};

/// Something to know about an arm that is no reason to leave it out.
struct Flag {
  std::string code{}, text{};
};

/// One question of fairness, and what was found.
struct Check {
  std::string code{};
  bool ok = true;
  std::string text{};
  bool differs_by_nature = false;  ///< it differs, because such a strategy does
  bool known = true;               ///< false: the records do not say, so nothing was found
};

/// Milliseconds of an iteration.
struct Parts {
  double data = kUnknown, forward = kUnknown, backward = kUnknown, compute = kUnknown, exchange = kUnknown,
         optimizer = kUnknown, hidden = kUnknown;
};

struct Bytes {
  double per_step = kUnknown, gradients = kUnknown, parameters = kUnknown, activations = kUnknown,
         control = kUnknown, total_gib = kUnknown;
};

struct Bandwidth {
  double algorithm_gbit = kUnknown, bus_gbit = kUnknown, link_gbit = kUnknown, utilisation = kUnknown;
};

struct QualityAtTime {
  double seconds = kUnknown;
  Estimate quality{};
};

struct TimeToTarget {
  Estimate seconds{};
  int64_t reached = 0, of = 0;
};

struct Price {
  double value = kUnknown;
  std::string currency{};
};

struct Tuning {
  struct Value {
    double value = kUnknown, mean = kUnknown;
  };
  std::string setting{};
  double best = kUnknown;
  std::string edge{};  ///< "low" or "high" where the best is the grid's last
  std::vector<Value> values{};
};

/// What an iteration was expected to take; `error` is (predicted - measured) / measured.
struct Predicted {
  double ms = kUnknown, compute_ms = kUnknown, exchange_ms = kUnknown, hidden_ms = kUnknown,
         bytes_per_step = kUnknown, error = kUnknown;
  std::string from{};  ///< where its times of compute come from
};

/// The network that workers sat on, as far as figures are told apart by it.
struct NetworkName {
  std::string name{};  ///< empty: none that is known
  double scale = 1;    ///< by which its rates were divided
  bool operator==(const NetworkName&) const = default;
};

/// One prediction beside what was measured.
struct PredictionPoint {
  struct Step {
    double ms = kUnknown, compute_ms = kUnknown, exchange_ms = kUnknown, hidden_ms = kUnknown;
  };
  /// "run": by the run itself, at its end; "simulated": by `simulate`; "advice": by `advise`, before it ran.
  std::string series{};
  std::string name{}, family{}, network{};
  std::string arm{};  ///< the id of the arm that was measured; empty: a row of the advice
  Step predicted{}, measured{};
  double error = kUnknown;
  std::string why_not{};  ///< why it does not count; empty: it counts
};

/// How far off the predictions of a series were: of the errors' sizes, over the points that count.
struct PredictionSummary {
  std::string series{};
  int64_t n = 0, left_out = 0, within_10 = 0, within_20 = 0;
  double median = kUnknown, p90 = kUnknown;
  double left_out_median = kUnknown;  ///< of the points that do not count
};

/// A file of another command that lies in the folder: its JSON as text, checked for what we rely on.
struct Attachment {
  std::string file{}, json{};
};

/// Settings by their dotted names, as text.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Progress {
  int64_t step = 0, of = 0;  ///< of 0: how many is not known
  double step_seconds = kUnknown, seconds_left = kUnknown, bytes_per_s = kUnknown;
  std::vector<double> losses_by_worker{};
  std::vector<int64_t> updates_by_worker{};
};

struct Curve {
  std::vector<double> examples{}, seconds{}, loss{};
};

struct EvalCurve {
  std::vector<double> examples{}, seconds{}, quality{};
  std::string split = "test";
};

struct RunResult {
  std::string id{}, arm{}, row{}, name{}, kind = "row", folder{}, state = "planned", message{};
  Settings axes{}, settings{};  ///< settings: those that vary
  int64_t seed = 0;
  double lr = kUnknown;
  double quality = kUnknown, loss = kUnknown, speedup = kUnknown, ms = kUnknown, ms_p50 = kUnknown,
         ms_p95 = kUnknown, examples_per_s = kUnknown, train_seconds = kUnknown, bytes_per_step = kUnknown,
         outside_load = kUnknown, peak_memory = kUnknown, noise_scale = kUnknown;
  int64_t workers = 0, examples = 0, steps = 0, global_batch = 0;
  int64_t stages = 1;                                        ///< that the model was cut into
  std::string activation_codec{};                            ///< of what travels between them
  double bubble = kUnknown;                                  ///< mean over stages
  double bits_forward = kUnknown, bits_backward = kUnknown;  ///< likewise, of those that send
  int64_t tested = 0;                                        ///< examples that the score is of
  std::map<std::string, double> measures{};                  ///< all of the last evaluation
  std::map<std::string, double> bytes_by_kind{};
  bool collapsed = false, reused = false, other_version = false, alone = true;
  Parts parts{};
  NetworkName network{};
  std::optional<Predicted> predicted{};
  bool late = false;       ///< its emulated network was not trustworthy
  bool simulated = false;  ///< nothing was trained
  std::string strategy{}, codec{}, command{}, host{}, cpu{}, date{}, version{}, commit{}, start_hash{},
      data_hash{}, test_hash{};
  int64_t cores = 0, threads = 0;
  Curve curve{};
  EvalCurve evals{};
  std::optional<Progress> progress{};
};

/// Runs that are alike in everything but the seed.
struct ArmResult {
  std::string id{}, name{}, row{}, kind = "row", family{}, strategy{}, codec{};
  int64_t group =
      0;  ///< arms of one group learn the same from the same data and are compared with each other
  int64_t workers = 1;
  int64_t stages = 1;              ///< that the model is cut into
  std::string activation_codec{};  ///< of what travels between them; empty: there are none
  Settings axes{}, settings{};
  std::string state{};
  std::vector<std::string> runs{};
  std::vector<Check> checks{};
  bool excluded = false;  ///< a check failed: left out of plots, front and advice
  std::vector<Flag> flags{};
  Measure measure{};  ///< that of its task
  Estimate quality{};
  std::optional<Difference> difference{};  ///< to the arm most like it, or to its control
  std::optional<Difference> to_base{};     ///< to the one that all of its group are judged by; its own is 0
  std::optional<QualityAtTime> quality_at_time{};
  std::optional<TimeToTarget> time_to_target{};
  Estimate speedup{};
  std::string speed_against{};  ///< the id of the arm that speed-up is measured against
  double efficiency = kUnknown;
  std::string words{};  ///< its speed in words
  Estimate ms{}, examples_per_s{}, train_seconds{};
  double ms_p50 = kUnknown, ms_p95 = kUnknown;
  Parts parts{};
  double seconds_per_epoch = kUnknown;
  double examples = kUnknown, updates = kUnknown, global_batch = kUnknown;  ///< means over its runs
  double worker_share = kUnknown;  ///< examples of a worker in one update
  double worker_batch = kUnknown;  ///< examples that it takes at a time
  Bytes bytes{};
  std::optional<Bandwidth> bandwidth{};
  double peak_memory = kUnknown, noise_scale = kUnknown, outside_load = kUnknown;
  std::vector<int64_t> staleness{};  ///< how many updates were so stale, over workers and runs
  double worker_low = kUnknown, worker_high = kUnknown;  ///< quality of single workers' models
  std::optional<Price> price{};
  NetworkName on{};
  std::optional<record::NetworkRecord> network{};  ///< of its first run that has one; links in use alone
  std::optional<Predicted> predicted{};
  std::optional<record::PipelineRecord> pipeline{};  ///< of its first run that has one
  std::vector<record::StageRecord> stage_work{};     ///< means over its runs
  bool simulated = false;                            ///< all its finished runs are: nothing was trained
  bool pareto = false;
  std::optional<Tuning> tuning{};

  /// Copies of the model: workers that share a batch out.
  int64_t replicas() const { return std::max<int64_t>(1, workers / std::max<int64_t>(1, stages)); }
  /// What this arm's workers can give at best, in multiples of the base's speed: of a model in as many stages
  /// by replicas, else by workers.
  double ideal_speedup(const ArmResult& base) const;
  bool has_flag(std::string_view code) const;
  /// Alone, on the host and by the version that others were, and on a network that was as it should be.
  bool timed_fairly() const;
  bool timing_counts() const;  ///< and nobody else used the machine
};

struct Advice {
  std::string verdict = "nothing";  ///< "best", "undecided", "none" (beats one worker) or "nothing" (to say)
  std::string sentence{}, paragraph{};
  std::string arm{};  ///< the id of the one to use; empty: none
  std::vector<std::string> rivals{};
};

struct ScalingPoint {
  std::string group{}, arm{};  ///< group: what is scaled, "ddp, int8"
  int64_t workers = 1;
  double examples_per_s = kUnknown, speedup = kUnknown;
};

struct Results {
  std::string title{}, file{}, made{}, version{}, commit{}, state = "finished";
  Measure measure{};
  std::optional<Target> target{};
  std::string baseline{};  ///< the id of the arm that others are compared with; empty: none
  Advice advice{};
  std::vector<Note> notes{};
  Settings common{};
  std::vector<std::string> varies{}, axes{};
  std::vector<ArmResult> arms{};
  std::vector<RunResult> runs{};
  std::vector<ScalingPoint> strong{}, weak{};
  std::vector<PredictionPoint> predictions{};
  std::vector<PredictionSummary> prediction_errors{};
  std::vector<Attachment> placements{};      ///< of `plan --out`
  std::optional<Attachment> advice_check{};  ///< of `advise --out`
  int64_t omitted_curves = 0;

  const ArmResult* arm(std::string_view id) const;  ///< null: there is none
};

/// As docs/formats/results.md has it.
nlohmann::ordered_json to_json(const Results& results);
/// The same as text: what is written, sent and embedded.
std::string json_text(const Results& results);

}  // namespace syncopate::report
