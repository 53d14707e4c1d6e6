#include "syncopate/comm/shared_memory.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/comm/broadcast_text.h"
#include "syncopate/comm/machine.h"
#include "syncopate/lifeline/socket.h"

namespace syncopate::comm {
namespace {

[[noreturn]] void refused(const char* what, int64_t bytes) {
  throw CommError("cannot {} {} MiB of shared memory: {}", what, bytes >> 20, std::strerror(errno));
}

/// An anonymous file: it lives as long as somebody has it open or mapped.
lifeline::Socket anonymous_file(int64_t bytes) {
  lifeline::Socket file(::memfd_create("syncopate", MFD_CLOEXEC));
  if (!file.open() || ::ftruncate(file.fd(), bytes) != 0) refused("make", bytes);
  // Pages that do not exist would be a SIGBUS at the first touch, with no word of why.
  if (const int code = ::posix_fallocate(file.fd(), 0, bytes); code != 0) {
    errno = code;
    refused("get", bytes);
  }
  return file;
}

}  // namespace

void require_one_machine(Group& group) {
  if (group.size() == 1 || on_one_host(group)) return;
  throw ConfigError(
      "the strategy hogwild keeps the parameters in memory that all workers share, but they run on several "
      "machines; use the strategy parameter-server instead");
}

std::shared_ptr<SharedMemory> SharedMemory::create(Group& group, int64_t bytes) {
  check(bytes > 0, "shared memory holds something");
  require_one_machine(group);
  lifeline::Socket file;
  std::string path;
  if (group.rank() == 0) {
    file = anonymous_file(bytes);
    path = fmt::format("/proc/{}/fd/{}", ::getpid(), file.fd());
  }
  path = broadcast_text(group, path, 0);
  if (group.rank() != 0) {
    file = lifeline::Socket(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.open()) refused("open", bytes);
  }
  void* const address =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (address == MAP_FAILED) refused("map", bytes);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(address, bytes));
  group.barrier();  // rank 0 keeps its descriptor open until everybody has found it
  return memory;
}

SharedMemory::~SharedMemory() { ::munmap(address_, static_cast<size_t>(bytes_)); }

std::byte* SharedMemory::at(int64_t offset, int64_t size) const {
  check(offset >= 0 && offset + size <= bytes_, "inside the shared memory");
  return static_cast<std::byte*>(address_) + offset;
}

at::Tensor SharedMemory::tensor(const std::shared_ptr<SharedMemory>& memory, int64_t offset, int64_t count,
                                at::ScalarType type) {
  const auto size = count * static_cast<int64_t>(at::elementSize(type));
  return at::from_blob(
      memory->at(offset, size), {count}, [memory](void*) {}, at::TensorOptions().dtype(type));
}

std::atomic<int64_t>& SharedMemory::counter(int64_t offset) const {
  static_assert(std::atomic<int64_t>::is_always_lock_free && sizeof(std::atomic<int64_t>) == sizeof(int64_t));
  return *reinterpret_cast<std::atomic<int64_t>*>(at(offset, sizeof(int64_t)));
}

}  // namespace syncopate::comm
