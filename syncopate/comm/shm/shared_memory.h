#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "syncopate/comm/group.h"

namespace syncopate::comm {

/// Memory of the host that every rank of a group sees, zero at first. It has no name in any file system, so
/// nothing is left behind however the ranks end. Tensors over it keep it mapped.
class SharedMemory {
 public:
  /// Collective. Throws ConfigError when not all ranks run on one machine, CommError when the system refuses.
  static std::shared_ptr<SharedMemory> create(Group& group, int64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// `count` elements from `offset` bytes on.
  static at::Tensor tensor(const std::shared_ptr<SharedMemory>& memory, int64_t offset, int64_t count,
                           at::ScalarType type);
  /// A number that ranks may change at once.
  std::atomic<int64_t>& counter(int64_t offset) const;

 private:
  SharedMemory(void* address, int64_t bytes) : address_(address), bytes_(bytes) {}
  std::byte* at(int64_t offset, int64_t size) const;

  void* address_;
  int64_t bytes_;
};

/// Throws ConfigError unless every rank of the group runs on this machine. Collective.
void require_one_machine(Group& group);

}  // namespace syncopate::comm
