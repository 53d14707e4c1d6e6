#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "syncopate/run/spec.h"

namespace syncopate::lab {

/// An experiment file: settings that all rows share, and what each row changes.
///
///     title = "Which way of synchronising is fastest here?"
///     [settings]
///     task = "supersense"          # any flag of `syncopate train`, or
///     strategy.bucket_mib = 10     # any setting that --set takes
///     [[row]]
///     strategy = "ddp"
///     workers = 2
struct Experiment {
  std::string title;
  std::string cost;                ///< what to expect, for people; may be empty
  std::vector<run::RunSpec> rows;  ///< complete and valid
};

/// A file that names no batch size gives every row the same global batch: sixteen examples per worker of its
/// largest row. Throws DataError when the file is not TOML, ConfigError for an unknown or bad setting (with
/// the row) or no rows.
Experiment read_experiment(const std::filesystem::path& path);

}  // namespace syncopate::lab
