#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "syncopate/comm/open.h"
#include "tests/contract/ranks.h"

namespace syncopate::test {
namespace {

TEST(Rendezvous, UsesTorchrunsStore) {
  c10d::TCPStoreOptions serving;
  serving.port = 0;
  serving.isServer = true;
  serving.waitWorkers = false;
  const auto agent = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", serving);
  run_threads(2, [&](int rank) {
    comm::CommOptions options;
    options.rank = rank;
    options.size = 2;
    options.timeout = kPatience;
    options.rendezvous.kind = lifeline::RendezvousPoint::Kind::kAgent;
    options.rendezvous.address = {"127.0.0.1", agent->getPort()};
    options.rendezvous.topic = std::string("first");
    comm::Membership member = comm::open(options);
    EXPECT_EQ(member.server != nullptr, rank == 0);
    at::Tensor mine = at::full({2}, rank + 1.0);
    member.group->all_reduce(mine, comm::Op::kSum).wait();
    EXPECT_EQ(mine.sum().item<double>(), 6);
    member.leave();
  });
}

}  // namespace
}  // namespace syncopate::test
