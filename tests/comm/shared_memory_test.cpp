#include "syncopate/comm/shm/shared_memory.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "tests/contract/ranks.h"

namespace syncopate::test {
namespace {

using comm::SharedMemory;

TEST(SharedMemory, IsSharedZeroedAndKeptAliveByItsTensors) {
  run_ranks(3, [](comm::Group& group) {
    at::Tensor numbers;
    {
      const auto memory = SharedMemory::create(group, 64 + 100 * 4);
      numbers = SharedMemory::tensor(memory, 64, 100, at::kFloat);
      EXPECT_EQ(numbers.abs().sum().item<float>(), 0);
      group.barrier();
      memory->counter(0) += group.rank() + 1;
      numbers[group.rank()] = 5;
      group.barrier();
      EXPECT_EQ(memory->counter(0), 6);
      EXPECT_THROW(SharedMemory::tensor(memory, 64, 101, at::kFloat), InternalError);
    }
    EXPECT_EQ(numbers.sum().item<float>(), 15);
    group.barrier();
  });
}

}  // namespace
}  // namespace syncopate::test
