#pragma once

#include <filesystem>
#include <memory>

#include "syncopate/report/results.h"

namespace syncopate::report {

/// A comparison in a folder (an experiment's, a folder of runs, or one run's), analysed again whenever
/// something is new in it. Cheap to call every second: finished runs are read once, of others what was added.
class Reader {
 public:
  explicit Reader(std::filesystem::path folder);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// True where something is new since the last call; results() then holds it. Throws DataError where there
  /// is no such folder, or neither a run nor a prediction in it. What is damaged is left out and named in a
  /// note.
  bool refresh();
  const Results& results() const;

 private:
  struct Held;
  std::unique_ptr<Held> held_;
};

/// The same, once.
Results analyse(const std::filesystem::path& folder);

}  // namespace syncopate::report
