#include "syncopate/parallel/pipeline/buffer_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"

namespace syncopate::parallel {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kGrowth = size_t{64} << 20;  // of a file, at once
constexpr std::array<char, 8> kBufferMark = {'S', 'Y', 'N', 'C', 'A', 'C', 'T', '1'};

struct BufferOwner {
  std::array<char, 8> mark = kBufferMark;
  uint64_t run = 0;
};

bool lock_buffer(int file) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES);
}

/// Takes over an empty file or one that this run left.
void own_buffer(int file, const std::filesystem::path& path, uint64_t run) {
  if (!lock_buffer(file)) {
    throw DataError("the activation buffer {} is in use by another run: use another --out", path.string());
  }
  struct stat status {};
  BufferOwner owner;
  const bool fresh = ::fstat(file, &status) == 0 && status.st_size == 0;
  if (!fresh && (::pread(file, &owner, sizeof owner, 0) != sizeof owner || owner.mark != kBufferMark ||
                 owner.run != run)) {
    throw DataError("the activation buffer {} belongs to another run: remove it or use another --out",
                    path.string());
  }
}

}  // namespace

BufferMemory::BufferMemory(size_t capacity) : capacity_(capacity / 64 * 64) {
  map(-1);
  data_ = whole_;
}

BufferMemory::BufferMemory(const std::filesystem::path& path, size_t capacity, uint64_t run)
    : capacity_(capacity / 64 * 64), path_(path) {
  if (path.has_parent_path()) make_folder(path.parent_path());
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) {
    throw DataError("cannot open the activation buffer {}: {}; use another --out", path.string(),
                    std::strerror(errno));
  }
  try {
    own_buffer(file_, path, run);
    const BufferOwner owner{.run = run};
    if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, &owner, sizeof owner, 0) != sizeof owner ||
        ::ftruncate(file_, static_cast<off_t>(kPage + capacity_)) != 0) {
      throw DataError(
          "cannot write the activation buffer {}: {}; lower activation.buffer_gib or use another --out",
          path.string(), std::strerror(errno));
    }
    map(file_);
    data_ = whole_ + kPage;
  } catch (...) {
    ::close(file_);
    throw;
  }
}

BufferMemory::~BufferMemory() {
  if (whole_ != nullptr) ::munmap(whole_, capacity_ + (file_ >= 0 ? kPage : 0));
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
}

void BufferMemory::map(int file) {
  const size_t size = capacity_ + (file >= 0 ? kPage : 0);
  const int kind = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const memory = ::mmap(nullptr, std::max<size_t>(size, 1), PROT_READ | PROT_WRITE, kind, file, 0);
  if (memory == MAP_FAILED) {
    throw ConfigError("cannot set {:.3g} GiB aside for activations: {}; lower activation.buffer_gib",
                      static_cast<double>(capacity_) * 0x1p-30, std::strerror(errno));
  }
  whole_ = static_cast<char*>(memory);
}

std::optional<size_t> BufferMemory::take(size_t bytes) {
  const size_t size = rounded(bytes);
  if (size > capacity_ - used_) return std::nullopt;
  if (file_ >= 0 && used_ + size > on_disk_) grow(used_ + size);
  const size_t offset = used_;
  used_ += size;
  return offset;
}

void BufferMemory::grow(size_t needed) {
  // Writing to a page that the disk has no room for would kill the process: ask for room first.
  const auto allocate = [&](size_t end) {
    const auto from = static_cast<off_t>(kPage + on_disk_), size = static_cast<off_t>(end - on_disk_);
    const int failed = ::posix_fallocate(file_, from, size);
    if (failed == 0) on_disk_ = end;
    return failed;
  };
  if (allocate(std::min(capacity_, std::max(needed, on_disk_ + kGrowth))) == 0) return;
  if (const int failed = allocate(needed); failed != 0) {
    throw DataError(
        "cannot grow the activation buffer {}: {}; free some space, lower activation.buffer_gib or use "
        "another "
        "--out",
        path_.string(), std::strerror(failed));
  }
}

void BufferMemory::clear() {
  std::memset(data_, 0, used_);
  used_ = 0;
}

void BufferMemory::read_ahead(size_t offset, size_t bytes) const {
  if (file_ < 0 || bytes == 0) return;
  const size_t begin = (kPage + offset) / kPage * kPage, end = kPage + offset + bytes;
  ::madvise(whole_ + begin, end - begin, MADV_WILLNEED);
}

}  // namespace syncopate::parallel
