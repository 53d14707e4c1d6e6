#pragma once

#include <filesystem>
#include <string>

#include "syncopate/report/results.h"

// The files that a comparison leaves: docs/formats/results.md.
namespace syncopate::report {

/// One line for each run, RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe.
std::string csv_text(const Results& results);

/// One line for each arm, with the notes and the advice, as Markdown. Nothing from a file becomes markup.
std::string markdown_text(const Results& results);

/// A workbook with the sheets arms, runs and about. Throws DataError when it cannot be written.
void write_workbook(const std::filesystem::path& file, const Results& results);

struct ResultFiles {
  bool page = true;                 ///< report.html too
  std::filesystem::path page_at{};  ///< in another place than the folder; empty: in the folder
};

/// Writes results.csv, results.json, results.md, results.xlsx and report.html, each whole or not at all.
/// Throws DataError when one cannot be written.
void write_results(const std::filesystem::path& folder, const Results& results,
                   const ResultFiles& files = {});

}  // namespace syncopate::report
