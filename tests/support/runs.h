#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/support.h"

namespace syncopate::test {

/// Writes a small sentiment data set in SST-2's form (train.tsv, dev.tsv) into `folder` and returns its path.
std::string small_sst2(const TempDir& folder);

/// `syncopate train` on it: a bert-tiny, no dropout, ten examples a step, into `out`; then `more` flags.
std::vector<std::string> train_command(const std::string& data, const std::filesystem::path& out,
                                       const std::vector<std::string>& more);

std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path);
std::vector<double> losses_of(const std::filesystem::path& run);  ///< "loss" of every step

/// Whether this system lets a test make network and mount namespaces of its own.
bool namespaces_allowed();

/// Processes whose command line holds `text`.
std::vector<int> processes_with(const std::string& text);

}  // namespace syncopate::test
