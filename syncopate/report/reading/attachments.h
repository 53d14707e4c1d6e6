#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/report/results.h"

// What other commands leave in a folder of runs: advice.json of `advise`, *.placement.json of `plan`.
namespace syncopate::report {

struct Attachments {
  std::optional<Attachment> advice{};
  std::vector<Attachment> placements{};  ///< by their file's name
  std::vector<Note> notes{};             ///< files that could not be read

  bool any() const { return advice || !placements.empty(); }
};

/// Which such files there are, and when they changed: another text, other contents.
std::string attachments_stamp(const std::filesystem::path& folder);

/// Reads them. One that is damaged is left out and named in a note.
Attachments read_attachments(const std::filesystem::path& folder);

std::string advice_row_name(const nlohmann::ordered_json& row);    ///< "ddp, int8, 4 workers"
std::string advice_network(const nlohmann::ordered_json& advice);  ///< "worldwide ÷ 100"; empty: none

/// A sentence for a folder without runs: what was predicted, and how well that held.
std::string advice_sentence(const Results& results);
std::string placement_sentence(const Attachment& placement);

}  // namespace syncopate::report
