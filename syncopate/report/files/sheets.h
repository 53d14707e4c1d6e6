#pragma once

#include <string>
#include <variant>
#include <vector>

#include "syncopate/report/results.h"

namespace syncopate::report {

/// Nothing, a number, or a text. A truth is the text "true" or "false".
using Cell = std::variant<std::monostate, double, std::string>;

/// A table for other programs: what results.csv and the workbook hold.
struct Sheet {
  std::string name{};
  std::vector<std::string> head{};
  std::vector<std::vector<Cell>> rows{};  ///< as many cells as the head
};

Sheet runs_sheet(const Results& results);   ///< one row for each run
Sheet arms_sheet(const Results& results);   ///< one row for each arm
Sheet about_sheet(const Results& results);  ///< title, advice, notes, settings that all runs share

}  // namespace syncopate::report
