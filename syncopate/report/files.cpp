#include "syncopate/report/files.h"

#include "syncopate/base/file.h"
#include "syncopate/report/page.h"

namespace syncopate::report {

void write_results(const std::filesystem::path& folder, const Results& results, const ResultFiles& files) {
  const std::string json = json_text(results);
  write_file_atomically(folder / "results.json", json);
  write_file_atomically(folder / "results.csv", csv_text(results));
  write_file_atomically(folder / "results.md", markdown_text(results));
  write_workbook(folder / "results.xlsx", results);
  if (files.page)
    write_file_atomically(files.page_at.empty() ? folder / "report.html" : files.page_at, page(json));
}

}  // namespace syncopate::report
