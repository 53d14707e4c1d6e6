// Which backend is chosen by itself, and which ones are refused.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/comm/nccl.h"
#include "syncopate/comm/open.h"
#include "tests/contract/ranks.h"

namespace syncopate::test {
namespace {

/// What ranks on such hosts exchange by; each sums something with the others. Throws what opening throws.
std::string backend_on(const std::string& hosts, const std::string& asked) {
  const int port = lifeline::LifelineServer(lifeline::LifelineServerOptions{}).port();
  std::vector<std::string> found(hosts.size());
  run_threads(static_cast<int>(hosts.size()), [&](int rank) {
    comm::CommOptions options;
    options.rank = rank;
    options.size = static_cast<int>(hosts.size());
    options.timeout = kPatience;
    options.backend = asked;
    options.host = std::string(1, hosts[static_cast<size_t>(rank)]);
    options.rendezvous.kind = lifeline::RendezvousPoint::Kind::kAddress;
    options.rendezvous.address = {"127.0.0.1", port};
    comm::Membership member = comm::open(options);
    at::Tensor mine = at::ones({3});
    member.group->all_reduce(mine, comm::Op::kSum).wait();
    EXPECT_EQ(mine[0].item<double>(), static_cast<double>(hosts.size()));
    found[static_cast<size_t>(rank)] = member.backend;
    member.leave();
  });
  for (const std::string& each : found) EXPECT_EQ(each, found.front());
  return found.front();
}

TEST(Backend, FitsWhereTheRanksAre) {
  EXPECT_EQ(backend_on("aaa", "auto"), "shm");
  EXPECT_EQ(backend_on("abc", "auto"), "gloo");
  EXPECT_EQ(backend_on("aba", "auto"), "shm+gloo");
  EXPECT_EQ(backend_on("aba", "shm+gloo"), "shm+gloo");
  EXPECT_EQ(backend_on("aba", "gloo"), "gloo");
}

TEST(Backend, IsRefusedWhereItDoesNotFit) {
  const auto refusal = [](const std::string& hosts, const std::string& asked) {
    try {
      backend_on(hosts, asked);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("ab", "shm").find("these run on several; use gloo"), std::string::npos);
  EXPECT_NE(refusal("aab", "shm").find("these run on several; use shm+gloo"), std::string::npos);
  EXPECT_NE(refusal("aa", "shm+gloo").find("these run on one; use shm"), std::string::npos);
  EXPECT_NE(refusal("ab", "shm+gloo").find("each of these has its own; use gloo"), std::string::npos);
  if (comm::has_nccl()) {
    EXPECT_EQ(backend_on("aab", "nccl"), backend_on("aab", "auto"));  // what GPUs add comes later
  } else {
    EXPECT_NE(refusal("aa", "nccl").find("built without NCCL"), std::string::npos);
  }
  EXPECT_NE(refusal("ab", "smoke").find("a backend is auto, gloo, shm, shm+gloo, mpi or nccl"),
            std::string::npos);
}

}  // namespace
}  // namespace syncopate::test
