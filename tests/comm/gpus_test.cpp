#include "syncopate/comm/gpus.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/comm/nccl.h"
#include "syncopate/gpu/graph.h"
#include "tests/contract/ranks.h"

namespace syncopate::test {
namespace {

/// What two ranks on these devices are told, each; empty: nothing.
std::vector<std::string> told(const std::vector<c10::Device>& devices, const std::string& backend) {
  std::vector<std::string> words(devices.size());
  auto groups = comm::open_in_process(static_cast<int>(devices.size()), kPatience);
  run_threads(static_cast<int>(devices.size()), [&](int rank) {
    const auto at = static_cast<size_t>(rank);
    comm::Membership membership;
    membership.group = std::move(groups[at]);
    const comm::Group* const before = membership.group.get();
    try {
      comm::use_gpus(membership, devices[at], backend, kPatience);
      EXPECT_EQ(membership.group.get(), before) << "no GPU, nothing to change";
    } catch (const ConfigError& error) {
      words[at] = error.what();
    }
  });
  return words;
}

TEST(Gpus, RanksOnCpusExchangeAsTheyDid) {
  EXPECT_EQ(told({c10::kCPU, c10::kCPU}, "auto"), std::vector<std::string>(2));
}

TEST(Gpus, SomeOnGpusAndOthersOnCpusAreRefusedOnEveryRank) {
  if (gpu::built()) GTEST_SKIP() << "would look at a GPU that may not be here";
  const std::string sentence = "rank 1 computes on a GPU and rank 0 on a CPU; give all the same --device";
  EXPECT_EQ(told({c10::kCPU, c10::Device(c10::kCUDA, 0)}, "auto"), std::vector<std::string>(2, sentence));
}

TEST(Gpus, NcclIsRefusedOnCpus) {
  const std::string sentence =
      comm::has_nccl()
          ? std::string("the backend nccl is for workers on GPUs; use --device cuda or the backend auto")
          : std::string(
                "this program was built without NCCL: use the backend auto, or build it with "
                "CUDA's compiler, NCCL's headers and a libtorch that has NCCL");
  EXPECT_EQ(told({c10::kCPU, c10::kCPU}, "nccl"), std::vector<std::string>(2, sentence));
}

}  // namespace
}  // namespace syncopate::test
