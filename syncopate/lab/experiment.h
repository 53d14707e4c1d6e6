#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/lab/axes.h"
#include "syncopate/lab/experiment_file.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::lab {

/// Before the name of a phase, where model.init_from names one.
inline constexpr std::string_view kPhasePrefix = "phase:";

/// What an experiment file asks for; docs/formats/experiment.md describes the file.
///
/// Rows times axes make arms: an arm is a set of settings that runs once with each of its seeds. Phases train
/// models for arms to start from; they take nothing of [settings].
struct Experiment {
  /// One run of a [[phase]].
  struct Phase {
    std::string name;               ///< the phase's
    Settings axes{};                ///< values of its axes, the seed's among them
    spec::RunSpec spec{};           ///< complete and valid; starts from `after` where that is given
    std::optional<size_t> after{};  ///< an earlier one of `phases`
    std::string label() const;      ///< "books, every 8": told apart from other runs of the phase
  };

  struct Arm {
    std::string place;               ///< in the file: "row 2"
    std::string row;                 ///< the row's name, or its strategy and codec
    std::string name;                ///< with the values of its axes; unique in the file
    Settings axes{};                 ///< those that it heeds, the seed's apart
    std::vector<std::string> own{};  ///< settings that the row gives itself
    spec::RunSpec spec{};            ///< complete and valid, with the first of its seeds
    std::vector<int64_t> seeds{};
    std::string after{};                          ///< the phase it starts from; empty: none
    std::vector<std::optional<size_t>> starts{};  ///< the run of that phase, for each seed
    bool tuned = false;                           ///< its rate is chosen by [tune]
    std::string settles{};                        ///< the setting that others have tuned and it gives itself
    std::vector<size_t> control_of{};             ///< the arms that it is the serial control of
    bool control() const { return !control_of.empty(); }
    spec::RunSpec with_seed(int64_t seed) const;
    /// The same in arms that differ in nothing but the seed; one that is tuned is another than one that is
    /// not.
    std::string identity() const;
    /// Makes the other's runs this one's; throws ConfigError where both have one of them.
    void take_seeds(const Arm& other);
  };

  /// Chooses a setting, usually the rate, for each arm on the validation split.
  struct Tune {
    std::string setting = "optim.lr";
    std::vector<double> values{};    ///< ascending
    std::vector<int64_t> seeds{};    ///< empty: each arm's first
    int64_t refine = 1;              ///< rounds of values between the best and its neighbours
    int64_t epochs = 0, steps = 0;   ///< of tuning runs; 0: the arm's own
    std::string validation = "0.1";  ///< what is held out where the arm itself holds out nothing
  };

  struct Target {
    std::string measure;
    double value = 0;
  };

  std::string title, cost;  ///< the cost is the expected running time; may be empty
  std::filesystem::path file;
  std::vector<Phase> phases;      ///< in the order they can run
  std::vector<Arm> arms;          ///< rows' in the file's order, then controls
  std::vector<std::string> axes;  ///< dotted names in the file's order, without the seed
  std::optional<Tune> tune{};
  std::optional<Target> target{};

  // [compare]
  std::optional<std::string> baseline{};  ///< a row's or an arm's name
  std::vector<std::string> differs{};     ///< checks that may differ, because they are the subject
  std::optional<double> worker_hour{};    ///< price
  std::string currency = "USD";
  std::optional<double> link_gbit{};
};

/// If the file gives no batch size, every row gets the same global batch: sixteen examples per worker of the
/// row with the most workers. Where a row holds out examples for validation (because it chooses by them, or
/// is told to), every row of the same data does. Throws DataError when the file is not TOML, ConfigError with
/// the place for an unknown or bad setting or axis, for one that nobody heeds, for a phase that is not there
/// before it is used, for the same settings twice, for no rows and for too many.
Experiment read_experiment(const std::filesystem::path& path, const FileOptions& options = {});

/// Throws ConfigError or DataError for the first thing that the experiment needs and that is not there: data,
/// model folders, vocabularies, devices, room for the workers.
void require_inputs(const Experiment& experiment);

/// A tuning run of the arm: the validation split is scored; of the test split one example, the least there
/// is.
spec::RunSpec tuning_spec(const Experiment::Tune& tune, const Experiment::Arm& arm, double value,
                          int64_t seed);

/// Examples behind one update: of a step, or of a worker's share where workers update when they are ready.
int64_t examples_per_update(const spec::RunSpec& spec);

/// An arm's run without others: one worker, the same examples in an update, as many updates.
spec::RunSpec serial_control(const spec::RunSpec& spec);

/// Adds to the arms a serial control of each that differs from the baseline in examples per update or number
/// of updates, unless there is such an arm. The baseline is the report's: the arm that is named, else the
/// one-worker arm, else that with the fewest workers, of the arm's own task, data and model where there is
/// one.
void add_controls(Experiment& experiment);

/// Gives each arm a name for people, by its row and what it changes.
void name_arms(std::vector<Experiment::Arm>& arms);
/// "every 8", "bf16": one setting in such a name.
std::string in_name(const Setting& setting);

}  // namespace syncopate::lab
