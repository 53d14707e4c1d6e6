#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/spec/run_spec.h"

namespace syncopate::lab {

/// An experiment file: settings that all rows share, and what each row changes.
///
///     title = "Which strategy is fastest here?"
///     [settings]
///     task = "supersense"          # any flag of `syncopate train`, or
///     strategy.bucket_mib = 10     # any setting that --set takes
///     [[row]]
///     strategy = "ddp"
///     workers = 2
///
/// A shared setting goes to the rows that heed it (strategy.every to local-sgd, not to ddp); one that none
/// heeds is refused, and so is one of a row's own that it does not heed.
///
/// Phases train models for rows to start from: a phase has its own settings (none of [settings]), and a row
/// or a later phase starts from it by name.
///
///     [[phase]]
///     name = "books"
///     task = "mlm"
///     [[row]]
///     name = "after books"         # label in the table (default: the strategy)
///     init_from = "phase:books"
struct Experiment {
  struct Row {
    std::string name;  ///< may be empty, not a phase's
    spec::RunSpec spec;
    std::optional<std::string> after{};  ///< the phase it starts from
  };
  std::string title;
  std::string cost;         ///< expected running time, shown with the title; may be empty
  std::vector<Row> phases;  ///< in the order they run; complete and valid
  std::vector<Row> rows;    ///< likewise
};

/// If the file gives no batch size, every row gets the same global batch: sixteen examples per worker of the
/// row with the most workers. Where a row holds out examples for validation (because it chooses by them, or
/// is told to), every row of the same data does. Throws DataError when the file is not TOML, ConfigError for
/// an unknown or bad setting (with the row), a phase that is not there before it is used, or no rows.
Experiment read_experiment(const std::filesystem::path& path);

}  // namespace syncopate::lab
