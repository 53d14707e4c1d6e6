#include "syncopate/comm/gpus.h"

#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/comm/gpu_seats.h"
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

/// "a0 b0 -": on GPU a of host 0, on GPU b of host 0, on a CPU.
std::vector<comm::GpuSeat> seats(const std::vector<std::string>& places) {
  std::vector<comm::GpuSeat> all;
  for (const std::string& place : places) {
    comm::GpuSeat seat;
    if (place != "-") {
      seat.on_gpu = seat.known = 1;
      seat.gpu[0] = place.at(0);
      seat.host = static_cast<uint64_t>(place.at(1));
    }
    all.push_back(seat);
  }
  return all;
}

TEST(Gpus, RanksExchangeTheShortestWayThatTheirSeatsAllow) {
  using comm::GpuWay;
  const auto way = [](const std::vector<std::string>& places, bool nccl,
                      const std::string& backend = "auto") {
    return comm::way_between(seats(places), backend, nccl);
  };
  EXPECT_EQ(way({"-", "-"}, true), GpuWay::kHost);
  EXPECT_EQ(way({"a0", "a0", "a0"}, true), GpuWay::kOneGpu);
  EXPECT_EQ(way({"a0", "b0"}, true), GpuWay::kNccl);
  EXPECT_EQ(way({"a0", "b0"}, false), GpuWay::kHost) << "not built in";
  EXPECT_EQ(way({"a0", "b0", "a0"}, true), GpuWay::kHost) << "some share one";
  EXPECT_EQ(way({"a0", "a1"}, true), GpuWay::kNccl) << "taken for two hosts";
  EXPECT_EQ(way({"a0", "b0"}, true, "nccl"), GpuWay::kNccl);
  EXPECT_EQ(way({"a0", "b0"}, true, "gloo"), GpuWay::kHost) << "asked for";
  EXPECT_EQ(way({"a0", "a0"}, true, "shm"), GpuWay::kHost);
  std::vector<comm::GpuSeat> unknown = seats({"a0", "b0"});
  unknown[1].known = 0;
  EXPECT_EQ(comm::way_between(unknown, "auto", true), GpuWay::kHost);
}

TEST(Gpus, SeatsThatDoNotFitAreOneSentence) {
  const auto refusal = [](const std::vector<std::string>& places, const std::string& backend) -> std::string {
    try {
      comm::way_between(seats(places), backend, true);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({"b0", "a0", "a0"}, "nccl"),
            "ranks 1 and 2 share a GPU, which NCCL does not allow; use the backend auto, or as many GPUs as "
            "workers");
  EXPECT_EQ(refusal({"-", "a0"}, "auto"),
            "rank 1 computes on a GPU and rank 0 on a CPU; give all the same --device");
  EXPECT_EQ(refusal({"a0", "-"}, "gloo"),
            "rank 0 computes on a GPU and rank 1 on a CPU; give all the same --device");
  EXPECT_EQ(refusal({"-", "-"}, "nccl"),
            "the backend nccl is for workers on GPUs; use --device cuda or the backend auto");
  EXPECT_EQ(refusal({"a0", "b0"}, "nccl"), "");
}

}  // namespace
}  // namespace syncopate::test
