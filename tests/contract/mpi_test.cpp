// What the group over MPI does of its own, where mpirun has started the ranks; elsewhere it has no cases.
#include "syncopate/comm/mpi.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "syncopate/base/error.h"
#include "tests/contract/mpi_ranks.h"

namespace syncopate::test {
namespace {

using comm::Group;
using comm::Op;

class OverMpi : public testing::TestWithParam<int> {
 protected:
  MpiBoard::Page board_ = MpiBoard::next_page();
};

std::vector<int> sizes() { return mpi_ranks() > 0 ? std::vector{mpi_ranks()} : std::vector<int>(); }

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OverMpi);
INSTANTIATE_TEST_SUITE_P(Mpi, OverMpi, testing::ValuesIn(sizes()), testing::PrintToStringParamName());

TEST_P(OverMpi, ALetterOfAnotherLengthIsAnErrorThatEndsTheGroup) {
  for (const int64_t expected : {9, 11}) {
    run_mpi_ranks([&](Group& group) {
      if (group.rank() == 0) group.send(at::ones({10}), 1, 3).wait();
      if (group.rank() != 1) return;
      at::Tensor into = at::zeros({expected});
      try {
        group.receive(into, 0, 3).wait();
        ADD_FAILURE() << "40 bytes came where " << into.nbytes() << " were expected";
      } catch (const CommError& error) {
        EXPECT_NE(std::string(error.what()).find("rank 0 sent "), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find(expected == 9 ? "where 36 bytes" : "where 44 bytes"),
                  std::string::npos)
            << error.what();
      }
      EXPECT_THROW(group.receive(into, 0, 3), CommError);
    });
  }
}

// MPI goes on writing into the tensors of an operation that nobody waits for any more.
TEST_P(OverMpi, AnOperationDoesNotOutliveItsGroup) {
  std::atomic<int>& gone = board_.tally(0);
  run_mpi_ranks([&](Group& group) {
    std::unique_ptr<Group> other = group.split(0, group.rank());
    if (group.rank() == 0) {
      at::Tensor mine = at::ones({100'000}), into = at::ones({3});
      comm::Pending sum = other->all_reduce(mine, Op::kSum), letter = other->receive(into, 1, 1);
      other.reset();
      EXPECT_THROW(sum.wait(), CommError);
      EXPECT_THROW(letter.wait(), CommError);
      gone = 1;
    }
    while (gone == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    group.barrier();
  });
}

TEST_P(OverMpi, IsForAsManyRanksAsTheLauncherHasStarted) {
  EXPECT_NO_THROW(comm::require_mpi(GetParam()));
  EXPECT_THROW(comm::require_mpi(GetParam() + 1), ConfigError);
}

}  // namespace
}  // namespace syncopate::test
