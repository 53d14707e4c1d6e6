#include "syncopate/record/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "syncopate/base/error.h"
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

LineFile::LineFile(std::filesystem::path path, int64_t keep) : path_(std::move(path)) {
  std::string kept;
  if (keep > 0 && std::filesystem::exists(path_)) {
    const std::vector<std::string> lines = read_lines(path_, "record");
    const size_t count = std::min(lines.size(), static_cast<size_t>(keep));
    for (size_t i = 0; i < count; ++i) kept += lines[i] + "\n";
    kept_ = static_cast<int64_t>(count);
  }
  write_file_atomically(path_, kept);
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0) throw DataError("cannot write {}: {}", path_.string(), std::strerror(errno));
}

LineFile::~LineFile() {
  if (file_ >= 0) ::close(file_);
}

void LineFile::write(std::string_view line) {
  std::string text(line);
  text += '\n';
  const off_t before = ::lseek(file_, 0, SEEK_END);
  const ssize_t wrote = ::write(file_, text.data(), text.size());
  if (wrote != static_cast<ssize_t>(text.size())) {
    if (wrote >= 0) errno = ENOSPC;
    const int reason = errno;
    if (wrote > 0 && ::ftruncate(file_, before) != 0)
      errno = reason;  // half a line may stay: nothing else to do
    errno = reason;
    throw DataError("cannot write {}: {}; free some space or choose another folder", path_.string(),
                    std::strerror(errno));
  }
}

}  // namespace syncopate::record
