#include "syncopate/record/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "syncopate/base/error.h"

namespace syncopate::record {

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) throw DataError("cannot write {}: {}", path_.string(), std::strerror(errno));
}

AppendFile::~AppendFile() {
  if (file_ >= 0) ::close(file_);
}

void AppendFile::write(std::string_view bytes) {
  const off_t before = ::lseek(file_, 0, SEEK_END);
  const ssize_t wrote = ::write(file_, bytes.data(), bytes.size());
  if (wrote == static_cast<ssize_t>(bytes.size())) return;
  if (wrote >= 0) errno = ENOSPC;
  const int reason = errno;
  if (wrote > 0 && ::ftruncate(file_, before) != 0) errno = reason;  // a part may stay: nothing else to do
  throw DataError("cannot write {}: {}; free some space or choose another folder", path_.string(),
                  std::strerror(reason));
}

}  // namespace syncopate::record
