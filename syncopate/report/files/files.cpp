#include "syncopate/report/files/files.h"

#include <future>

#include "syncopate/base/file.h"
#include "syncopate/report/files/page.h"

namespace syncopate::report {

void write_results(const std::filesystem::path& folder, const Results& results, const ResultFiles& files) {
  // With thousands of runs the workbook takes as long as the rest.
  std::future<void> workbook =
      std::async(std::launch::async, [&] { write_workbook(folder / "results.xlsx", results); });
  const std::string json = json_text(results);
  write_file_atomically(folder / "results.json", json);
  write_file_atomically(folder / "results.csv", csv_text(results));
  write_file_atomically(folder / "results.md", markdown_text(results));
  if (files.page)
    write_file_atomically(files.page_at.empty() ? folder / "report.html" : files.page_at, page(json));
  workbook.get();
}

}  // namespace syncopate::report
