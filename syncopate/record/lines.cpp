#include "syncopate/record/lines.h"

#include <algorithm>

#include "syncopate/base/file.h"

namespace syncopate::record {

std::vector<std::string> read_lines(const std::filesystem::path& path, std::string_view what) {
  const std::string text = read_file(path, what);
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

LineFile::LineFile(std::filesystem::path path, int64_t keep) {
  std::string kept;
  if (keep > 0 && std::filesystem::exists(path)) {
    const std::vector<std::string> lines = read_lines(path, "record");
    const size_t count = std::min(lines.size(), static_cast<size_t>(keep));
    for (size_t i = 0; i < count; ++i) kept += lines[i] + "\n";
    kept_ = static_cast<int64_t>(count);
  }
  write_file_atomically(path, kept);
  file_ = std::make_unique<AppendFile>(path);
}

void LineFile::write(std::string_view line) { file_->write(std::string(line) + '\n'); }

}  // namespace syncopate::record
