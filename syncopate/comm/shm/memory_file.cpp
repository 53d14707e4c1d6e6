#include "syncopate/comm/shm/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "syncopate/base/error.h"

namespace syncopate::comm {
namespace {

[[noreturn]] void refused(const char* what, int64_t bytes, int code) {
  throw CommError("cannot {} {} MiB of shared memory: {}", what, (bytes + (1 << 20) - 1) >> 20,
                  std::strerror(code));
}

/// What no other file of this kernel has, whatever it is called.
std::string identity(const lifeline::Socket& file) {
  struct stat found {};
  if (::fstat(file.fd(), &found) != 0) return "";
  return fmt::format("{}:{}:{}", found.st_dev, found.st_ino, found.st_size);
}

}  // namespace

MemoryFile::MemoryFile(int64_t bytes, int64_t backed)
    : file_(::memfd_create("syncopate", MFD_CLOEXEC)), bytes_(bytes) {
  if (!file_.open() || ::ftruncate(file_.fd(), bytes) != 0) refused("make", bytes, errno);
  back(0, backed);
  address_ = fmt::format("/proc/{}/fd/{} {}", ::getpid(), file_.fd(), identity(file_));
}

MemoryFile::MemoryFile(const std::string& address, int64_t bytes) : address_(address), bytes_(bytes) {
  const size_t space = address.find(' ');
  check(space != std::string::npos, "an address of memory names the file and what tells it from others");
  // The same path may mean another file in another container.
  file_ = lifeline::Socket(::open(address.substr(0, space).c_str(), O_RDWR | O_CLOEXEC));
  if (!file_.open()) refused("open", bytes, errno);
  if (identity(file_) != address.substr(space + 1)) refused("open", bytes, ENOENT);
}

void MemoryFile::back(int64_t offset, int64_t bytes) const {
  int code = bytes > 0 ? EINTR : 0;
  while (code == EINTR) code = ::posix_fallocate(file_.fd(), offset, bytes);
  if (code != 0) refused("get", bytes, code);
}

std::byte* MemoryFile::map() const {
  void* const address =
      ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
  if (address == MAP_FAILED) refused("map", bytes_, errno);
  return static_cast<std::byte*>(address);
}

}  // namespace syncopate::comm
