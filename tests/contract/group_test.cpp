#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <typeinfo>

#include "syncopate/base/error.h"
#include "syncopate/comm/staged.h"
#include "tests/contract/mpi_ranks.h"
#include "tests/contract/ranks.h"

namespace syncopate::test {
namespace {

using comm::Group;
using comm::kAnyRank;
using comm::Op;

const std::vector<at::ScalarType> kTypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
                                            at::kInt,   at::kShort,  at::kChar, at::kByte,     at::kBool};
const std::vector<int64_t> kSizes = {0, 1, 7, 1000, 65537};

/// Small whole numbers, exact in every type even when four ranks add them, and different on every rank. They
/// repeat after kPeriod, so that large tensors cost little.
constexpr int64_t kPeriod = 3 * 23;

at::Tensor one_period(int rank, at::ScalarType type, int salt) {
  const at::Tensor index = at::arange(kPeriod, at::kLong);
  if (type == at::kBool) return (index + rank + salt).remainder(3).eq(0);
  return (index * 3 + rank * 7 + salt * 5).remainder(23).add(rank).to(type);
}

at::Tensor repeated(const at::Tensor& period, int64_t size) {
  return period.repeat({size / kPeriod + 1}).narrow(0, 0, size);
}

at::Tensor input(int rank, int64_t size, at::ScalarType type, int salt = 0) {
  return repeated(one_period(rank, type, salt), size);
}

at::Tensor expected_reduction(int ranks, int64_t size, at::ScalarType type, Op op, int salt) {
  at::Tensor total = one_period(0, type, salt).to(at::kDouble);
  for (int r = 1; r < ranks; ++r) {
    const at::Tensor next = one_period(r, type, salt).to(at::kDouble);
    total = op == Op::kSum   ? total + next
            : op == Op::kMax ? at::maximum(total, next)
                             : at::minimum(total, next);
  }
  return repeated(total.to(type), size);
}

/// Staged: over Gloo, with every tensor copied as those of a device would be. Mpi: where mpirun has started
/// the ranks, and then alone.
enum class Backend { kInProcess, kGloo, kStaged, kShm, kMpi, kTwoLevel };

struct Case {
  Backend backend;
  int ranks;
  std::string hosts{};  ///< of each rank, where there are several
};

class GroupContract : public testing::TestWithParam<Case> {
 protected:
  int ranks() const { return GetParam().ranks; }
  void run(const std::function<void(Group&)>& body, std::chrono::milliseconds timeout = kPatience) {
    if (GetParam().backend == Backend::kInProcess) return run_ranks(ranks(), body, timeout);
    if (GetParam().backend == Backend::kGloo) return run_gloo_ranks(ranks(), body, timeout);
    if (GetParam().backend == Backend::kShm) return run_shm_ranks(ranks(), body, timeout);
    if (GetParam().backend == Backend::kMpi) return run_mpi_ranks(body, timeout);
    if (GetParam().backend == Backend::kTwoLevel) return run_two_level_ranks(GetParam().hosts, body, timeout);
    run_gloo_ranks(ranks(), body, timeout, [](std::unique_ptr<Group> inner) {
      return comm::staged(std::move(inner), comm::Stage::kEverything);
    });
  }
  /// Runs `body` for every type and size; each gets fresh tensors.
  void run_all(const std::function<void(Group&, at::ScalarType, int64_t)>& body) {
    run([&](Group& group) {
      for (const at::ScalarType type : kTypes) {
        for (const int64_t size : kSizes) body(group, type, size);
      }
    });
  }
  /// Numbers that all ranks see, 0 at first.
  std::atomic<int>& tally(size_t place = 0) {
    return GetParam().backend == Backend::kMpi ? board_.tally(place) : tallies_.at(place);
  }
  std::vector<at::Tensor> room(int64_t size, at::ScalarType type) const {
    std::vector<at::Tensor> list;
    for (int r = 0; r < ranks(); ++r) list.push_back(at::zeros({size}, type));
    return list;
  }

 private:
  MpiBoard::Page board_ = MpiBoard::next_page();
  std::array<std::atomic<int>, MpiBoard::kTallies> tallies_{};
};

/// What takes two ranks or more.
class SeveralRanks : public GroupContract {};

std::string what(const at::Tensor& got, at::ScalarType type, int64_t size) {
  return fmt::format("{} x {}: {}", c10::toString(type), size,
                     got.numel() > 0 ? got.to(at::kDouble)[0].item<double>() : 0);
}

TEST_P(GroupContract, KnowsItsRanks) {
  run([&](Group& group) {
    ASSERT_EQ(group.size(), ranks());
    ++tally(static_cast<size_t>(group.rank()));
  });
  for (int rank = 0; rank < ranks(); ++rank) EXPECT_EQ(tally(static_cast<size_t>(rank)), 1);
}

TEST_P(GroupContract, AllReduceGivesEveryRankTheReduction) {
  for (const Op op : {Op::kSum, Op::kMax, Op::kMin}) {
    run_all([&](Group& group, at::ScalarType type, int64_t size) {
      at::Tensor mine = input(group.rank(), size, type, 1);
      group.all_reduce(mine, op).wait();
      EXPECT_TRUE(mine.equal(expected_reduction(ranks(), size, type, op, 1))) << what(mine, type, size);
      const bool foil = ranks() > 1 && size >= 7 && op == Op::kSum && type != at::kBool;
      if (foil) {
        EXPECT_FALSE(mine.equal(input(group.rank(), size, type, 1)));
      }
    });
  }
}

// In the group's own room, whole and in part, several at once; beside tensors of its size elsewhere.
TEST_P(GroupContract, AllReduceWorksInTheGroupsOwnRoom) {
  run_all([&](Group& group, at::ScalarType type, int64_t size) {
    const at::Tensor room = group.room(2 * size, type);
    ASSERT_EQ(room.numel(), 2 * size);
    EXPECT_EQ(room.ne(0).sum().item<int64_t>(), 0);
    at::Tensor front = room.narrow(0, 0, size), back = room.narrow(0, size, size);
    at::Tensor elsewhere = input(group.rank(), size, type, 3);
    front.copy_(input(group.rank(), size, type, 1));
    back.copy_(input(group.rank(), size, type, 2));
    comm::Pending first = group.all_reduce(front, Op::kSum), second = group.all_reduce(elsewhere, Op::kSum);
    first.wait();
    EXPECT_TRUE(front.equal(expected_reduction(ranks(), size, type, Op::kSum, 1))) << what(front, type, size);
    EXPECT_TRUE(back.equal(input(group.rank(), size, type, 2)));
    group.all_reduce(back, Op::kMax).wait();
    second.wait();
    EXPECT_TRUE(back.equal(expected_reduction(ranks(), size, type, Op::kMax, 2))) << what(back, type, size);
    EXPECT_TRUE(elsewhere.equal(expected_reduction(ranks(), size, type, Op::kSum, 3)));
    const bool foil = ranks() > 1 && size >= 7 && type != at::kBool;
    if (foil) {
      EXPECT_FALSE(front.equal(input(group.rank(), size, type, 1)));
    }
  });
}

TEST_P(GroupContract, RoomsComeAndGo) {
  run([&](Group& group) {
    constexpr int64_t kCount = 10'000;
    at::Tensor kept = group.room(kCount, at::kFloat);
    for (int round = 0; round < 3; ++round) {
      at::Tensor room = group.room(kCount, at::kFloat);
      room.fill_(group.rank() + round);
      kept.fill_(1);
      group.all_reduce(room, Op::kSum).wait();
      group.all_reduce(kept, Op::kSum).wait();
      EXPECT_EQ(room[kCount - 1].item<float>(),
                static_cast<float>(ranks() * (ranks() - 1) / 2 + round * ranks()));
      EXPECT_EQ(kept[0].item<float>(), static_cast<float>(ranks()));
    }
  });
}

// Where ranks share memory; elsewhere all of them are told that they do not.
TEST_P(GroupContract, CommonMemoryIsOneForAllRanks) {
  run_all([&](Group& group, at::ScalarType type, int64_t size) {
    const at::Tensor common = group.common(size, type), other = group.common(size, type);
    at::Tensor have = at::full({1}, common.defined() && other.defined() ? 1 : 0, at::kLong);
    group.all_reduce(have, Op::kSum).wait();
    ASSERT_TRUE(have.item<int64_t>() == 0 || have.item<int64_t>() == ranks());
    const bool shares = GetParam().backend == Backend::kInProcess || GetParam().backend == Backend::kShm;
    EXPECT_EQ(common.defined(), shares && (size > 0 || GetParam().backend == Backend::kInProcess));
    if (!common.defined()) return;
    EXPECT_EQ(common.ne(0).sum().item<int64_t>(), 0);
    group.barrier();
    const int last = ranks() - 1;
    if (group.rank() == last) common.copy_(input(last, size, type, 1));
    group.barrier();
    EXPECT_TRUE(common.equal(input(last, size, type, 1)));
    EXPECT_EQ(other.ne(0).sum().item<int64_t>(), 0);
    group.barrier();
    // In the group's room, beside one that is elsewhere.
    at::Tensor mine = group.room(size, type), elsewhere = input(group.rank(), size, type, 3);
    mine.copy_(input(group.rank(), size, type, 2));
    comm::Pending first = group.sum_into(common, mine), second = group.sum_into(other, elsewhere);
    first.wait();
    second.wait();
    EXPECT_TRUE(common.equal(expected_reduction(ranks(), size, type, Op::kSum, 2)))
        << what(common, type, size);
    EXPECT_TRUE(other.equal(expected_reduction(ranks(), size, type, Op::kSum, 3))) << what(other, type, size);
    EXPECT_TRUE(mine.equal(input(group.rank(), size, type, 2)));
    EXPECT_TRUE(elsewhere.equal(input(group.rank(), size, type, 3)));
    group.barrier();
  });
}

TEST_P(GroupContract, RowsInUseAreSummedIntoCommonMemory) {
  run([&](Group& group) {
    constexpr int64_t kRows = 90, kWidth = 40;
    at::Tensor total = group.common(kRows * kWidth, at::kFloat);
    if (!total.defined()) return;
    total = total.view({kRows, kWidth});
    const auto marked = [](int rank) {  // rows that are one rank's, several ranks' and nobody's
      const at::Tensor numbers = at::arange(kRows);
      return at::logical_or(numbers.remainder(7).eq(rank), numbers.remainder(5).eq(0)).to(at::kByte);
    };
    const auto table_of = [&](int rank) {
      return at::linspace(0.1, 7.3, kRows * kWidth).mul(rank + 1.3).sin().view({kRows, kWidth}) *
             marked(rank).unsqueeze(1);
    };
    at::Tensor sum = table_of(0), any = marked(0);
    for (int rank = 1; rank < group.size(); ++rank) {
      sum += table_of(rank);
      any = at::maximum(any, marked(rank));
    }
    const at::Tensor numbers = any.nonzero().squeeze(1);
    ASSERT_LT(numbers.numel(), kRows);
    const at::Tensor in_use = group.room(kRows, at::kByte);
    in_use.copy_(marked(group.rank()));
    for (const bool in_room : {true, false}) {
      at::Tensor mine =
          in_room ? group.room(kRows * kWidth, at::kFloat).view({kRows, kWidth}) : at::zeros({kRows, kWidth});
      mine.copy_(table_of(group.rank()));
      // Of rows that this rank has not used nothing is read, where others can see which these are.
      if (in_room) mine.index_fill_(0, marked(group.rank()).eq(0).nonzero().squeeze(1), NAN);
      const at::Tensor before = mine.clone();
      group.barrier();
      if (group.rank() == 0) total.fill_(5);
      group.barrier();
      group.sum_rows_into(total, mine, in_use, numbers).wait();
      EXPECT_TRUE(total.index_select(0, numbers).equal(sum.index_select(0, numbers))) << in_room;
      EXPECT_TRUE(total.index_select(0, any.eq(0).nonzero().squeeze(1)).eq(5).all().item<bool>()) << in_room;
      EXPECT_TRUE(mine.nan_to_num(7).equal(before.nan_to_num(7))) << in_room;
      EXPECT_FALSE(group.size() > 1 && total.index_select(0, numbers).equal(mine.index_select(0, numbers)));
    }
    group.barrier();
  });
}

TEST_P(GroupContract, FewRowsAreSummedAndNoRowsLetNobodyThroughEarly) {
  std::atomic<int>& arrived = tally();
  run([&](Group& group) {
    constexpr int64_t kRows = 5, kWidth = 3;
    const at::Tensor total = group.common(kRows * kWidth, at::kFloat);
    if (!total.defined()) return;
    const at::Tensor rows = total.view({kRows, kWidth}), in_use = group.room(kRows, at::kByte);
    for (const bool in_room : {true, false}) {
      at::Tensor mine =
          in_room ? group.room(kRows * kWidth, at::kFloat).view({kRows, kWidth}) : at::zeros({kRows, kWidth});
      mine.fill_(group.rank() + 1);
      in_use.fill_(1);
      group.barrier();
      if (group.rank() == 0) rows.fill_(-1);
      group.barrier();
      group.sum_rows_into(rows, mine, in_use, at::tensor({3}, at::kLong)).wait();  // fewer than ranks
      EXPECT_EQ(rows[3][0].item<float>(), static_cast<float>(ranks() * (ranks() + 1) / 2));
      EXPECT_EQ(rows[2][0].item<float>(), -1.0F);
      group.barrier();
      arrived = 0;
      group.barrier();
      if (group.rank() == ranks() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++arrived;
      group.sum_rows_into(rows, mine, in_use, at::empty({0}, at::kLong)).wait();
      EXPECT_EQ(arrived, ranks()) << "steps rely on it";
      group.barrier();
    }
  });
}

TEST_P(GroupContract, AllReduceOfFractionsIsTheSameOnAllRanks) {
  run([&](Group& group) {
    at::Tensor mine = at::linspace(-1, 1, 10007).mul(0.1 * (group.rank() + 1)).sin().contiguous();
    at::Tensor total = at::zeros({10007}, at::kDouble);
    for (int r = 0; r < ranks(); ++r)
      total += at::linspace(-1, 1, 10007).mul(0.1 * (r + 1)).sin().to(at::kDouble);
    group.all_reduce(mine, Op::kSum).wait();
    EXPECT_TRUE(at::allclose(mine.to(at::kDouble), total, 1e-5, 1e-6));
    std::vector<at::Tensor> all = room(10007, at::kFloat);
    group.all_gather(all, mine).wait();
    for (const at::Tensor& other : all) EXPECT_TRUE(other.equal(mine));
  });
}

TEST_P(GroupContract, BroadcastCopiesTheRoots) {
  run_all([&](Group& group, at::ScalarType type, int64_t size) {
    for (int root = 0; root < ranks(); ++root) {
      at::Tensor mine = input(group.rank(), size, type, root);
      group.broadcast(mine, root).wait();
      EXPECT_TRUE(mine.equal(input(root, size, type, root))) << what(mine, type, size);
    }
  });
}

TEST_P(GroupContract, GatherCollectsAtTheRootAlone) {
  run_all([&](Group& group, at::ScalarType type, int64_t size) {
    const int root = ranks() - 1;
    const at::Tensor mine = input(group.rank(), size, type, 2);
    const std::vector<at::Tensor> into = group.rank() == root ? room(size, type) : std::vector<at::Tensor>{};
    group.gather(into, mine, root).wait();
    EXPECT_TRUE(mine.equal(input(group.rank(), size, type, 2)));
    for (size_t r = 0; r < into.size(); ++r) {
      EXPECT_TRUE(into[r].equal(input(static_cast<int>(r), size, type, 2))) << what(into[r], type, size);
    }
  });
}

TEST_P(GroupContract, ScatterHandsEachRankItsOwn) {
  run_all([&](Group& group, at::ScalarType type, int64_t size) {
    const int root = ranks() / 2;
    std::vector<at::Tensor> from;
    for (int r = 0; r < ranks() && group.rank() == root; ++r) from.push_back(input(r, size, type, 3));
    at::Tensor mine = at::zeros({size}, type);
    group.scatter(mine, from, root).wait();
    EXPECT_TRUE(mine.equal(input(group.rank(), size, type, 3))) << what(mine, type, size);
  });
}

TEST_P(GroupContract, AllGatherCollectsEverywhere) {
  run_all([&](Group& group, at::ScalarType type, int64_t size) {
    std::vector<at::Tensor> all = room(size, type);
    group.all_gather(all, input(group.rank(), size, type, 4)).wait();
    for (int r = 0; r < ranks(); ++r) {
      EXPECT_TRUE(all[static_cast<size_t>(r)].equal(input(r, size, type, 4))) << what(all[0], type, size);
    }
  });
}

TEST_P(GroupContract, TakesTensorsOfAnyShape) {
  run([&](Group& group) {
    at::Tensor grid = at::full({3, 5, 2}, group.rank() + 1.0);
    at::Tensor point = at::scalar_tensor(group.rank() + 1.0).to(at::kFloat);
    group.all_reduce(grid, Op::kSum).wait();
    group.all_reduce(point, Op::kMax).wait();
    EXPECT_EQ(grid.min().item<double>(), ranks() * (ranks() + 1) / 2.0);
    EXPECT_EQ(point.item<double>(), ranks());
    at::Tensor leaf = at::full({4}, group.rank() + 1.0).requires_grad_();
    group.broadcast(leaf, 0).wait();
    EXPECT_EQ(leaf.sum().item<double>(), 4);
    // A piece of a larger tensor: its neighbours stay as they are.
    at::Tensor whole = at::full({10}, 1.0 + group.rank());
    group.all_reduce(whole.narrow(0, 3, 4), Op::kSum).wait();
    EXPECT_EQ(whole[2].item<double>(), 1.0 + group.rank());
    EXPECT_EQ(whole[3].item<double>(), ranks() * (ranks() + 1) / 2.0);
  });
}

// Larger than what a transport moves at a time, and not a whole number of that.
TEST_P(GroupContract, LargeTensorsArriveWhole) {
  run([&](Group& group) {
    const int next = (group.rank() + 1) % ranks(), before = (group.rank() + ranks() - 1) % ranks();
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kByte}) {
      const int64_t size = (int64_t{3} << 20) / static_cast<int64_t>(at::elementSize(type)) + 1;
      std::vector<at::Tensor> sums;
      std::vector<comm::Pending> pending;
      for (int k = 0; k < 3; ++k) {
        sums.push_back(input(group.rank(), size, type, k));
        pending.push_back(group.all_reduce(sums.back(), Op::kSum));
      }
      at::Tensor spread = input(group.rank(), size, type, 7), theirs = at::zeros({size}, type);
      const at::Tensor mine = input(group.rank(), size, type, 5);
      comm::Pending sending, receiving;
      if (ranks() > 1) {
        sending = group.send(mine, next, 1);
        receiving = group.receive(theirs, before, 1);
      }
      group.broadcast(spread, ranks() - 1).wait();
      for (size_t k = 3; k-- > 0;) pending[k].wait();
      for (int k = 0; k < 3; ++k)
        EXPECT_TRUE(sums[static_cast<size_t>(k)].equal(expected_reduction(ranks(), size, type, Op::kSum, k)));
      EXPECT_TRUE(spread.equal(input(ranks() - 1, size, type, 7)));
      sending.wait();
      receiving.wait();
      if (ranks() > 1) {
        EXPECT_TRUE(theirs.equal(input(before, size, type, 5)));
      }
      std::vector<at::Tensor> all = room(size, type);
      group.all_gather(all, mine).wait();
      const std::vector<at::Tensor> gathered =
          group.rank() == 0 ? room(size, type) : std::vector<at::Tensor>{};
      group.gather(gathered, mine, 0).wait();
      at::Tensor part = at::zeros({size}, type);
      group.scatter(part, gathered, 0).wait();
      for (int r = 0; r < ranks(); ++r)
        EXPECT_TRUE(all[static_cast<size_t>(r)].equal(input(r, size, type, 5)));
      EXPECT_TRUE(part.equal(mine));
    }
  });
}

TEST_P(GroupContract, ConcurrentOperationsMayBeWaitedForInAnyOrder) {
  run([&](Group& group) {
    std::vector<at::Tensor> tensors;
    std::vector<comm::Pending> pending;
    for (int k = 0; k < 40; ++k) {
      tensors.push_back(input(group.rank(), 100 + k * 31, at::kFloat, k));
      if (k % 3 == 2) {
        pending.push_back(group.broadcast(tensors.back(), k % ranks()));
      } else {
        pending.push_back(group.all_reduce(tensors.back(), Op::kSum));
      }
    }
    for (int k = 39; k >= 0; --k) pending[static_cast<size_t>(k)].wait();
    for (int k = 0; k < 40; ++k) {
      const int64_t size = 100 + k * 31;
      const at::Tensor expected = k % 3 == 2 ? input(k % ranks(), size, at::kFloat, k)
                                             : expected_reduction(ranks(), size, at::kFloat, Op::kSum, k);
      EXPECT_TRUE(tensors[static_cast<size_t>(k)].equal(expected)) << k;
    }
    pending[0].wait();  // a second wait has nothing left to wait for
  });
}

TEST_P(GroupContract, AnOperationThatIsNeverWaitedForStillRuns) {
  run([&](Group& group) {
    at::Tensor first = input(group.rank(), 50, at::kFloat, 1),
               second = input(group.rank(), 50, at::kFloat, 2);
    { const comm::Pending dropped = group.all_reduce(first, Op::kSum); }
    group.all_reduce(second, Op::kSum).wait();
    group.barrier();
    if (GetParam().backend != Backend::kStaged) {  // what is not waited for stays on the host
      EXPECT_TRUE(first.equal(expected_reduction(ranks(), 50, at::kFloat, Op::kSum, 1)));
    }
    EXPECT_TRUE(second.equal(expected_reduction(ranks(), 50, at::kFloat, Op::kSum, 2)));
  });
}

TEST_P(SeveralRanks, SendsAroundTheRing) {
  run_all([&](Group& group, at::ScalarType type, int64_t size) {
    const int next = (group.rank() + 1) % ranks(), before = (group.rank() + ranks() - 1) % ranks();
    const at::Tensor mine = input(group.rank(), size, type, 5);
    at::Tensor theirs = at::zeros({size}, type);
    comm::Pending sending = group.send(mine, next, 11);
    comm::Pending receiving = group.receive(theirs, before, 11);
    receiving.wait();
    sending.wait();
    EXPECT_TRUE(theirs.equal(input(before, size, type, 5))) << what(theirs, type, size);
  });
}

TEST_P(SeveralRanks, TagsKeepMessagesApartAndOneTagKeepsTheirOrder) {
  run([&](Group& group) {
    if (group.rank() > 1) return group.barrier();
    std::vector<at::Tensor> tensors;
    std::vector<comm::Pending> pending;
    for (int k = 0; k < 6; ++k) tensors.push_back(at::full({9}, group.rank() == 0 ? 10.0 + k : 0.0));
    for (int k = 0; k < 6; ++k) {
      // Rank 0 sends k = 0..5 with tags 0 and 1; rank 1 takes those with tag 1 first.
      const int index = group.rank() == 0 ? k : (k < 3 ? 2 * k + 1 : 2 * (k - 3));
      const at::Tensor& tensor = tensors[static_cast<size_t>(index)];
      pending.push_back(group.rank() == 0 ? group.send(tensor, 1, index % 2)
                                          : group.receive(tensor, 0, index % 2));
    }
    for (comm::Pending& one : pending) one.wait();
    for (int k = 0; k < 6; ++k) EXPECT_EQ(tensors[static_cast<size_t>(k)][8].item<double>(), 10.0 + k);
    group.barrier();
  });
}

TEST_P(SeveralRanks, ReceivesFromAnyRank) {
  run([&](Group& group) {
    if (group.rank() != 0) {
      group.send(at::full({33}, group.rank()).to(at::kLong), 0, 3).wait();
      return;
    }
    std::vector<bool> seen(static_cast<size_t>(ranks()));
    for (int k = 1; k < ranks(); ++k) {
      at::Tensor into = at::zeros({33}, at::kLong);
      group.receive(into, kAnyRank, 3).wait();
      const int64_t from = into[32].item<int64_t>();
      EXPECT_EQ(into.sum().item<int64_t>(), 33 * from);
      EXPECT_FALSE(seen.at(static_cast<size_t>(from)));
      seen.at(static_cast<size_t>(from)) = true;
    }
  });
}

TEST_P(GroupContract, BarrierLetsNobodyThroughEarly) {
  std::atomic<int>& arrived = tally();
  run([&](Group& group) {
    for (int round = 1; round <= 5; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(group.rank() * 3));
      ++arrived;
      group.barrier();
      EXPECT_GE(arrived.load(), round * ranks());
    }
  });
}

TEST_P(GroupContract, SplitsByColorAndOrdersByKey) {
  run([&](Group& group) {
    // Even and odd ranks; within each the order is turned round by the key.
    const std::unique_ptr<Group> half = group.split(group.rank() % 2, -group.rank());
    const int members = (ranks() - group.rank() % 2 + 1) / 2;
    ASSERT_EQ(half->size(), members);
    EXPECT_EQ(half->rank(), members - 1 - group.rank() / 2);
    at::Tensor mine = at::full({5}, 1.0 + group.rank());
    half->all_reduce(mine, Op::kSum).wait();
    double expected = 0;
    for (int r = group.rank() % 2; r < ranks(); r += 2) expected += 1.0 + r;
    EXPECT_EQ(mine[4].item<double>(), expected);
    // The group it came from goes on, and can be split again.
    const std::unique_ptr<Group> all = group.split(7, 0);
    EXPECT_EQ(all->rank(), group.rank());
    at::Tensor one = at::ones({1});
    all->all_reduce(one, Op::kSum).wait();
    group.all_reduce(one, Op::kSum).wait();
    EXPECT_EQ(one.item<double>(), ranks() * ranks());
    group.barrier();
  });
}

TEST_P(SeveralRanks, DeadRankIsAnErrorForTheOthers) {
  std::atomic<int>& errors = tally();
  const auto start = std::chrono::steady_clock::now();
  const auto body = [&](Group& group) {
    at::Tensor mine = at::ones({1000});
    group.all_reduce(mine, Op::kSum).wait();
    if (group.rank() == ranks() - 1) throw ConfigError("this rank dies");
    try {
      for (int k = 0; k < 3; ++k) group.all_reduce(mine, Op::kSum).wait();
      ADD_FAILURE() << "nobody told rank " << group.rank();
    } catch (const CommError& error) {
      ++errors;
      EXPECT_NE(std::string(error.what()).find(fmt::format("rank {} died", ranks() - 1)), std::string::npos)
          << error.what();
      EXPECT_THROW(group.barrier(), CommError) << "a dead group stays dead";
    }
  };
  EXPECT_THROW(run(body), ConfigError);
  EXPECT_EQ(errors, ranks() - 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience / 2);
}

TEST_P(SeveralRanks, RankThatLeavesIsAnErrorForThoseWhoWaitForIt) {
  if (GetParam().backend == Backend::kMpi) return;  // MPI's ranks leave together
  std::atomic<int>&in_sum = tally(0), &in_receive = tally(1);
  const auto waited = [&](Group& group, const std::function<void(at::Tensor)>& call) {
    at::Tensor mine = at::ones({1000});
    group.all_reduce(mine, Op::kSum).wait();
    if (group.rank() == ranks() - 1) return true;  // says goodbye in the middle of what the others do
    const auto start = std::chrono::steady_clock::now();
    try {
      call(mine);
    } catch (const CommError& error) {
      EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience / 4) << "before the deadline";
      const std::string sentence = error.what();
      const auto says = [&](const std::string& part) { return sentence.find(part) != sentence.npos; };
      const std::string left = fmt::format("rank {} left while rank ", ranks() - 1);
      const bool right = GetParam().backend == Backend::kInProcess
                             ? says(fmt::format("rank {} died", ranks() - 1))
                         : GetParam().backend == Backend::kShm ? says(left)
                         : GetParam().backend == Backend::kTwoLevel
                             ? says(left) || says("lost its connection to another rank in")
                             : says("lost its connection to another rank in");
      EXPECT_TRUE(right) << sentence;
      return true;
    }
    return false;
  };
  run([&](Group& group) {
    in_sum += waited(group, [&](at::Tensor mine) { group.all_reduce(mine, Op::kSum).wait(); }) ? 1 : 0;
  });
  EXPECT_EQ(in_sum, ranks());
  if (ranks() != 3) return;  // each takes a second
  run([&](Group& group) {
    in_receive += waited(group, [&](at::Tensor mine) { group.receive(mine, ranks() - 1, 0).wait(); }) ? 1 : 0;
  });
  EXPECT_EQ(in_receive, ranks());
}

/// What a rank's lifeline knows of, by rank.
using Lines = std::vector<std::shared_ptr<lifeline::Lifeline>>;

// Whoever leaves at the end of a program may leave others with operations that nobody needs any more.
TEST(ARankThatLeaves, FailsTheRunOnceSomebodyWaitsForIt) {
  struct Leaving {
    std::string hosts;  ///< of three ranks in two levels; none: shared memory
    int leaves, waits;  ///< ranks
    bool gathers = false;
  };
  for (const Leaving& each :
       {Leaving{"", 1, 0}, Leaving{"001", 1, 0}, Leaving{"011", 0, 1}, Leaving{"011", 0, 1, true}}) {
    SCOPED_TRACE("hosts " + each.hosts + (each.gathers ? ", gathers" : ""));
    Lines lines(3);
    const auto open = [&](const std::shared_ptr<lifeline::Lifeline>& line) {
      lines[static_cast<size_t>(line->rank())] = line;
      if (each.hosts.empty()) return comm::open_shm(line, kPatience);
      comm::TwoLevelPlace place{
          .prefix = "two-level", .address = "127.0.0.1", .rank = line->rank(), .hosts = {}};
      for (const char host : each.hosts) place.hosts.emplace_back(1, host);
      return comm::open_two_level(std::make_shared<comm::Waits>(line, kPatience), place);
    };
    std::atomic<int> told = 0;
    const auto body = [&](Group& group) {
      at::Tensor mine = at::ones({1000}), other = at::ones({1000});
      group.all_reduce(mine, Op::kSum).wait();
      if (group.rank() == each.leaves) return;
      lifeline::Lifeline& line = *lines[static_cast<size_t>(group.rank())];
      comm::Pending unneeded = each.gathers ? group.all_gather(at::ones({3, 1000}).unbind(0), other)
                                            : group.all_reduce(other, Op::kSum);
      if (group.rank() != each.waits) {
        told += line.await_failure(kPatience).has_value() ? 1 : 0;
        return;
      }
      const auto dead = [&] {
        try {
          group.all_reduce(mine, Op::kSum);
          return false;
        } catch (const CommError&) {
          return true;
        }
      };
      const auto start = std::chrono::steady_clock::now();
      while (!dead() && std::chrono::steady_clock::now() - start < kPatience / 4)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_LT(std::chrono::steady_clock::now() - start, kPatience / 4);
      EXPECT_FALSE(line.failure()) << "nobody waits for it";
      EXPECT_THROW(unneeded.wait(), CommError);
      told += line.await_failure(kPatience).has_value() ? 1 : 0;
    };
    run_ranks_over(3, body, kPatience, open);
    EXPECT_EQ(told, 2) << "the foil, where somebody does";
  }
}

TEST_P(SeveralRanks, RankThatLeavesLeavesWhatItSent) {
  run([&](Group& group) {
    at::Tensor mine = input(group.rank(), 1000, at::kFloat);
    if (group.rank() == ranks() - 1) {
      for (int to = 0; to < ranks() - 1; ++to) group.send(mine, to, 0).wait();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    group.receive(mine, ranks() - 1, 0).wait();
    EXPECT_TRUE(mine.equal(input(ranks() - 1, 1000, at::kFloat)));
  });
}

TEST_P(SeveralRanks, DeadRankEndsAReceive) {
  std::atomic<int>& errors = tally();
  EXPECT_THROW(run([&](Group& group) {
                 if (group.rank() == 1) throw ConfigError("this rank dies");
                 at::Tensor into = at::ones({10});
                 try {
                   group.receive(into, 1, 0).wait();
                 } catch (const CommError& error) {
                   ++errors;
                   EXPECT_NE(std::string(error.what()).find("rank 1 died"), std::string::npos)
                       << error.what();
                 }
               }),
               ConfigError);
  EXPECT_EQ(errors, ranks() - 1);
}

TEST_P(SeveralRanks, TimeoutNamesTheMissingRank) {
  std::atomic<int>&errors = tally(0), &over = tally(1);
  // Ranks of one process are connected from the start; others may take their time for that.
  const auto timeout = std::chrono::milliseconds(1000);
  const bool from_the_start = GetParam().backend == Backend::kInProcess;
  run(
      [&](Group& group) {
        at::Tensor mine = at::ones({10});
        group.all_reduce(mine, Op::kSum).wait();
        if (!from_the_start) group.set_timeout(timeout);
        if (group.rank() == 1) {
          while (over == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
          return;
        }
        try {
          group.all_reduce(mine, Op::kSum).wait();
        } catch (const CommError& error) {
          EXPECT_NE(std::string(error.what()).find("rank 1 did not answer for"), std::string::npos)
              << error.what();
          if (++errors == ranks() - 1) over = 1;
        }
        if (errors == ranks() - 1) over = 1;
      },
      from_the_start ? timeout : kPatience);
  EXPECT_EQ(errors, ranks() - 1);
}

TEST_P(SeveralRanks, EachRankHasItsOwnTimeout) {
  std::atomic<int>& over = tally();
  run([&](Group& group) {
    if (group.rank() == 0) {  // sends nothing, and would be waited for a minute
      while (over == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } else if (group.rank() == 1) {
      group.set_timeout(std::chrono::milliseconds(100));
      at::Tensor nothing = at::zeros({3});
      EXPECT_THROW(group.receive(nothing, 0, 0).wait(), CommError);
      over = 1;
    }
  });
}

const char* name_of(Backend backend) {
  switch (backend) {
    case Backend::kInProcess:
      return "InProcess";
    case Backend::kGloo:
      return "Gloo";
    case Backend::kShm:
      return "Shm";
    case Backend::kMpi:
      return "Mpi";
    case Backend::kTwoLevel:
      return "TwoLevel";
    default:
      return "Staged";
  }
}

std::vector<Case> cases(int fewest) {
  std::vector<Case> all;
  if (mpi_ranks() > 0) return {{Backend::kMpi, mpi_ranks()}};
  for (const Backend backend : {Backend::kInProcess, Backend::kGloo, Backend::kShm}) {
    for (int ranks = fewest; ranks <= 4; ++ranks) all.push_back({backend, ranks});
  }
  all.push_back({Backend::kStaged, 3});
  for (const char* hosts : {"0011", "001", "0101", "0111", "0121"})
    all.push_back({Backend::kTwoLevel, static_cast<int>(std::string(hosts).size()), hosts});
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& tested) {
  const Case& what = tested.param;
  return name_of(what.backend) + (what.hosts.empty() ? std::to_string(what.ranks) : "On" + what.hosts);
}

INSTANTIATE_TEST_SUITE_P(Backends, GroupContract, testing::ValuesIn(cases(1)),
                         [](const auto& tested) { return name_of(tested); });
INSTANTIATE_TEST_SUITE_P(Backends, SeveralRanks, testing::ValuesIn(cases(2)),
                         [](const auto& tested) { return name_of(tested); });

/// Who sums in the order of the ranks.
class InRankOrder : public testing::TestWithParam<Backend> {
 protected:
  static void run(int ranks, const std::function<void(Group&)>& body) {
    if (GetParam() == Backend::kMpi) return run_mpi_ranks(body);
    GetParam() == Backend::kShm ? run_shm_ranks(ranks, body) : run_ranks(ranks, body);
  }
};

/// Who compares what ranks call.
class ComparesCalls : public InRankOrder {};

std::vector<Backend> in_rank_order() {
  if (mpi_ranks() == 0) return {Backend::kInProcess, Backend::kShm};
  return mpi_ranks() == 3 ? std::vector{Backend::kMpi} : std::vector<Backend>();
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InRankOrder);
INSTANTIATE_TEST_SUITE_P(Backends, InRankOrder, testing::ValuesIn(in_rank_order()),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });
INSTANTIATE_TEST_SUITE_P(Backends, ComparesCalls, testing::Values(Backend::kInProcess, Backend::kShm),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST_P(InRankOrder, SumsHaveTheBitsOfOneRankThatAddsThemUp) {
  for (const int64_t size : {int64_t{700}, int64_t{400'001}}) {
    run(3, [&](Group& group) {
      const auto of = [&](int rank) {
        return at::linspace(0.1, 7.3, size).mul(rank + 1.3).sin().contiguous();
      };
      at::Tensor mine = of(group.rank());
      group.all_reduce(mine, Op::kSum).wait();
      EXPECT_TRUE(mine.equal((of(0) + of(1)) + of(2)));
      EXPECT_FALSE(mine.equal(of(0) + (of(1) + of(2))));
      at::Tensor room = group.room(size, at::kFloat);
      room.copy_(of(group.rank()));
      group.all_reduce(room, Op::kSum).wait();
      EXPECT_TRUE(room.equal(mine));
    });
  }
}

TEST_P(InRankOrder, PiecesGiveTheSameBitsAsTheWhole) {
  run(4, [](Group& group) {
    const at::Tensor source = at::linspace(0.1, 7.3, 5000).mul(group.rank() + 1.3).sin().contiguous();
    at::Tensor whole = source.clone(), pieces = source.clone(), foil = source.clone().flip(0).contiguous();
    group.all_reduce(whole, Op::kSum).wait();
    for (int64_t at = 0; at < 5000; at += 617) {
      group.all_reduce(pieces.narrow(0, at, std::min<int64_t>(617, 5000 - at)), Op::kSum).wait();
    }
    group.all_reduce(foil, Op::kSum).wait();
    EXPECT_TRUE(whole.equal(pieces));
    EXPECT_FALSE(whole.equal(foil));
  });
}

TEST_P(ComparesCalls, RejectsMismatchedCalls) {
  for (const at::ScalarType other : {at::kFloat, at::kInt}) {
    EXPECT_THROW(run(2,
                     [&](Group& group) {
                       at::Tensor mine = at::ones({4});
                       if (group.rank() == 0) {
                         group.all_reduce(mine, Op::kSum).wait();
                       } else if (other == at::kInt) {
                         group.all_reduce(mine.to(other), Op::kSum).wait();
                       } else {
                         group.broadcast(mine, 0).wait();
                       }
                     }),
                 CommError);
  }
}

TEST(Shm, ASumIntoCommonMemoryIsNoAllReduce) {
  for (const bool alike : {true, false}) {
    const auto body = [&](Group& group) {
      const at::Tensor room = group.room(9'000, at::kFloat), total = group.common(9'000, at::kFloat);
      if (alike || group.rank() == 0) {
        group.sum_into(total, room).wait();
      } else {
        group.all_reduce(room, Op::kSum).wait();
      }
    };
    if (alike) {
      EXPECT_NO_THROW(run_shm_ranks(2, body));
    } else {
      EXPECT_THROW(run_shm_ranks(2, body), CommError);
    }
  }
}

TEST(Shm, TensorsAtDifferentPlacesOfTheRoomAreAnErrorThatEndsTheGroup) {
  for (const int64_t place : {int64_t{0}, int64_t{64}, int64_t{-1}}) {
    const auto body = [&](Group& group) {
      const at::Tensor room = group.room(9'000, at::kFloat);
      at::Tensor other = place < 0 ? at::zeros({8'000}) : room.narrow(0, place, 8'000);
      group.all_reduce(group.rank() == 0 ? room.narrow(0, 0, 8'000) : other, Op::kSum).wait();
    };
    if (place == 0) {
      EXPECT_NO_THROW(run_shm_ranks(2, body));
    } else {
      EXPECT_THROW(run_shm_ranks(2, body), CommError);
    }
  }
}

TEST(Shm, ALetterOfAnotherLengthIsAnErrorThatEndsTheGroup) {
  for (const bool early : {false, true}) {
    std::atomic<int> errors{0};
    run_shm_ranks(2, [&](Group& group) {
      if (group.rank() == 0) {
        group.send(at::ones({10}), 1, 3).wait();
        if (early) group.send(at::ones({2}), 1, 4).wait();
        while (errors == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      at::Tensor two = at::zeros({2}), nine = at::zeros({9});
      if (early) group.receive(two, 0, 4).wait();  // the other one is put aside
      try {
        group.receive(nine, 0, 3).wait();
      } catch (const CommError& error) {
        EXPECT_NE(std::string(error.what()).find("sent 40 bytes with tag 3 where rank 1 expected 36"),
                  std::string::npos)
            << error.what();
        EXPECT_THROW(group.barrier(), CommError);
        ++errors;
      }
    });
    EXPECT_EQ(errors, 1);
  }
}

// A ring of which a few bytes are left, too few for a letter's head.
TEST(Shm, ALetterThatFindsNoRoomWaitsForIt) {
  run_shm_ranks(2, [](Group& group) {
    constexpr int64_t kRing = 1 << 20, kHead = 16;
    for (const int64_t left : {int64_t{1}, kHead - 1}) {
      at::Tensor first = input(0, kRing - kHead - left, at::kByte), second = input(0, 5000, at::kByte, 1);
      if (group.rank() == 0) {
        comm::Pending one = group.send(first, 1, 1), other = group.send(second, 1, 2);
        one.wait();
        group.barrier();
        other.wait();
      } else {
        group.barrier();
        at::Tensor large = at::zeros_like(first), small = at::zeros_like(second);
        group.receive(small, 0, 2).wait();
        group.receive(large, 0, 1).wait();
        EXPECT_TRUE(small.equal(second));
        EXPECT_TRUE(large.equal(first));
      }
      group.barrier();
    }
    if (group.rank() == 0) {  // and not for ever
      group.set_timeout(std::chrono::milliseconds(200));
      comm::Pending one = group.send(at::zeros({kRing - kHead - 1}, at::kByte), 1, 1);
      comm::Pending other = group.send(at::zeros({10}, at::kByte), 1, 2);
      one.wait();
      EXPECT_THROW(other.wait(), CommError);
    }
  });
}

using Open = std::function<std::unique_ptr<Group>(std::shared_ptr<lifeline::Lifeline>)>;
using Begin = comm::Pending (*)(Group&);

/// Rank 0 begins something that the others do not, and destroys its group.
void expect_to_end_with_its_group(int size, const Open& open, Begin begin) {
  lifeline::LifelineServerOptions where;
  where.size = size;
  lifeline::LifelineServer server(where);
  std::atomic<bool> gone{false};
  run_threads(size, [&](int rank) {
    const auto line = std::make_shared<lifeline::Lifeline>(
        lifeline::LifelineOptions{{"127.0.0.1", server.port()}, rank, size, kPatience, kPatience, "", {}});
    line->await_all(kPatience);
    std::unique_ptr<Group> group = open(line);
    if (rank == 0) {
      comm::Pending operation = begin(*group);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      group.reset();
      EXPECT_THROW(operation.wait(), CommError);
      gone = true;
    }
    while (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    line->goodbye();
  });
}

comm::Pending begin_sum(Group& group) { return group.all_reduce(at::ones({100'000}), Op::kSum); }

comm::Pending begin_gather(Group& group) {
  std::vector<at::Tensor> into;
  for (int rank = 0; rank < group.size(); ++rank) into.push_back(at::zeros({1000}));
  return group.gather(into, at::ones({1000}), 0);
}

comm::Pending begin_receive(Group& group) { return group.receive(at::ones({3}), 1, 1); }

TEST(Shm, AnOperationDoesNotOutliveItsGroup) {
  const Open open = [](std::shared_ptr<lifeline::Lifeline> line) {
    return comm::open_shm(std::move(line), kPatience);
  };
  for (const Begin begin : {begin_sum, begin_gather, begin_receive})
    expect_to_end_with_its_group(2, open, begin);
}

TEST(TwoLevel, AnOperationDoesNotOutliveItsGroup) {
  // Rank 0 waits for the other host, and for the other rank of its own.
  for (const std::vector<std::string>& hosts : {std::vector<std::string>{"a", "b", "b"}, {"a", "a", "b"}}) {
    const Open open = [&](const std::shared_ptr<lifeline::Lifeline>& line) {
      return comm::open_two_level(
          std::make_shared<comm::Waits>(line, kPatience),
          {.prefix = "two-level", .address = "127.0.0.1", .rank = line->rank(), .hosts = hosts});
    };
    for (const Begin begin : {begin_sum, begin_gather}) expect_to_end_with_its_group(3, open, begin);
  }
}

at::Tensor fractions_of(int rank, int64_t size) {
  return at::linspace(0.1, 7.3, size).mul(rank + 1.3).sin().contiguous();
}

// The second is longer than what crosses between hosts at a time.
TEST(TwoLevel, SumsOverTwoHostsGoInRankOrderWithinEach) {
  for (const int64_t size : {int64_t{700}, int64_t{2'200'001}}) {
    std::vector<at::Tensor> r;
    for (int rank = 0; rank < 4; ++rank) r.push_back(fractions_of(rank, size));
    const at::Tensor in_order = ((r[0] + r[1]) + r[2]) + r[3], pairs = (r[0] + r[1]) + (r[2] + r[3]),
                     crossed = (r[0] + r[2]) + (r[1] + r[3]);
    const std::vector<std::pair<std::string, at::Tensor>> all{
        {"0011", pairs}, {"0101", crossed}, {"0001", in_order}};
    for (const auto& [hosts, expected] : all) {
      run_two_level_ranks(hosts, [&, &sum = expected](Group& group) {
        at::Tensor mine = r[static_cast<size_t>(group.rank())].clone();
        group.all_reduce(mine, Op::kSum).wait();
        EXPECT_TRUE(mine.equal(sum));
      });
    }
    // The foils: each differs from what the others come to.
    EXPECT_FALSE(pairs.equal(in_order));
    EXPECT_FALSE(pairs.equal(crossed));
    EXPECT_FALSE(crossed.equal(in_order));
  }
}

TEST(TwoLevel, SumsOfHalfPrecisionAreRoundedOnce) {
  // Numbers between 256 and 512 are even in bfloat16. A host that rounded its own sum would come to 258, and
  // with the other's 1 to 260.
  const std::vector<double> mine_of{256, 1.203125, 1};
  run_two_level_ranks("001", [&](Group& group) {
    at::Tensor mine = at::full({9}, mine_of[static_cast<size_t>(group.rank())], at::kBFloat16);
    group.all_reduce(mine, Op::kSum).wait();
    EXPECT_EQ(mine[8].item<double>(), 258);
  });
  const auto rounded = [](double value) { return at::full({1}, value, at::kBFloat16).item<double>(); };
  EXPECT_EQ(rounded(rounded(mine_of[0] + mine_of[1]) + mine_of[2]), 260);  // foil
}

// The threads that carry an operation out wait for as long as the ranks live.
TEST(TwoLevel, ADeadlineCountsFromTheWait) {
  using std::chrono::milliseconds;
  run_two_level_ranks("0011", [](Group& group) {
    group.barrier();
    group.set_timeout(milliseconds(400));
    const bool late = group.rank() == 3;
    if (late) std::this_thread::sleep_for(milliseconds(700));
    at::Tensor mine = at::ones({5});
    comm::Pending sum = group.all_reduce(mine, Op::kSum);
    if (!late) std::this_thread::sleep_for(milliseconds(800));
    sum.wait();
    EXPECT_EQ(mine[4].item<double>(), 4);
    group.set_timeout(kPatience);
    group.barrier();
  });
}

TEST(TwoLevel, PartsTakeTheWayThatFitsTheirRanks) {
  run_two_level_ranks("aabb", [](Group& group) {
    const auto kind = [](const Group& part) { return std::string(typeid(part).name()); };
    // Of one host, of one rank of each, of three of them.
    const auto host = group.split(group.rank() / 2, 0), across = group.split(group.rank() % 2, 0),
               most = group.split(group.rank() == 3 ? 1 : 0, 0);
    EXPECT_NE(kind(*host).find("Shm"), std::string::npos) << kind(*host);
    EXPECT_NE(kind(*across).find("Gloo"), std::string::npos) << kind(*across);
    if (group.rank() < 3) {
      EXPECT_EQ(kind(*most), kind(group));
    }
    for (Group* part : {host.get(), across.get(), most.get()}) {
      at::Tensor one = at::ones({3});
      part->all_reduce(one, Op::kSum).wait();
      EXPECT_EQ(one[2].item<double>(), part->size());
      at::Tensor first = at::full({3}, part->rank());
      part->broadcast(first, part->size() - 1).wait();
      EXPECT_EQ(first[0].item<double>(), part->size() - 1);
    }
    group.barrier();
  });
}

}  // namespace
}  // namespace syncopate::test
