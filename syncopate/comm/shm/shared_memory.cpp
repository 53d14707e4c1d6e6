#include "syncopate/comm/shm/shared_memory.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <optional>
#include <string>

#include "syncopate/base/error.h"
#include "syncopate/comm/shm/memory_file.h"
#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/comm/together/machine.h"

namespace syncopate::comm {
void require_one_machine(Group& group) {
  if (group.size() == 1 || on_one_host(group)) return;
  throw ConfigError(
      "the strategy hogwild keeps the parameters in memory that all workers share, but they run on several "
      "machines; use the strategy parameter-server instead");
}

std::shared_ptr<SharedMemory> SharedMemory::create(Group& group, int64_t bytes) {
  check(bytes > 0, "shared memory holds something");
  require_one_machine(group);
  std::optional<MemoryFile> file;
  if (group.rank() == 0) file.emplace(bytes, bytes);
  const std::string address = broadcast_text(group, file ? file->address() : "", 0);
  if (!file) file.emplace(address, bytes);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(file->map(), bytes));
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
