// Who sleeps in shared memory is woken by the rank it waits for. A wake-up that is forgotten costs a quarter
// of a second each time, after which the sleeper looks by itself: nothing but time would tell.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "syncopate/base/clock.h"
#include "tests/contract/ranks.h"

namespace syncopate::test {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 4, kRounds = 40;
constexpr double kForgotten = 0.2;  // seconds; a forgotten wake-up costs more

/// How many rounds took as long as a forgotten wake-up; in each another rank comes late.
int slow_rounds(const std::function<void(comm::Group&)>& operation) {
  int slow = 0;
  run_shm_ranks(kRanks, [&](comm::Group& group) {
    operation(group);  // memory is taken at the first call
    for (int round = 0; round < kRounds; ++round) {
      group.barrier();
      const Stopwatch watch;
      if (round % kRanks == group.rank()) std::this_thread::sleep_for(milliseconds(2));
      operation(group);
      if (group.rank() == 0) slow += watch.seconds() > kForgotten;
    }
  });
  return slow;
}

TEST(ShmWakes, WhoeverWaitsForALateRank) {
  const auto numbers = [](int64_t count) { return at::ones({count}); };
  const std::pair<std::string, std::function<void(comm::Group&)>> operations[] = {
      {"a small sum", [&](comm::Group& group) { group.all_reduce(numbers(10), comm::Op::kSum).wait(); }},
      {"a sum of many pieces",
       [&](comm::Group& group) { group.all_reduce(numbers(int64_t{1} << 21), comm::Op::kSum).wait(); }},
      {"sums that are carried out behind others",
       [&](comm::Group& group) {
         std::vector<comm::Pending> all;
         for (int k = 0; k < 8; ++k) all.push_back(group.all_reduce(numbers(1 << 16), comm::Op::kSum));
         for (comm::Pending& each : all) each.wait();
       }},
      {"a broadcast", [&](comm::Group& group) { group.broadcast(numbers(int64_t{1} << 20), 1).wait(); }},
      {"a gather",
       [&](comm::Group& group) {
         std::vector<at::Tensor> into;
         if (group.rank() == 0) into.assign(kRanks, numbers(1 << 18));
         for (at::Tensor& each : into) each = each.clone();
         group.gather(into, numbers(1 << 18), 0).wait();  // to the rank that looks at the clock
       }},
      {"messages around",
       [&](comm::Group& group) {
         at::Tensor mine = numbers(1 << 18), theirs = numbers(1 << 18);
         comm::Pending sent = group.send(mine, (group.rank() + 1) % kRanks, 3);
         group.receive(theirs, (group.rank() + kRanks - 1) % kRanks, 3).wait();
         sent.wait();
       }},
  };
  for (const auto& [name, operation] : operations) EXPECT_LE(slow_rounds(operation), kRounds / 10) << name;
}

/// Where nobody is woken the clock of this test says so.
TEST(ShmWakes, AreMissedWhereNobodyComes) {
  int slow = 0;
  run_shm_ranks(2, [&](comm::Group& group) {
    group.barrier();
    const Stopwatch watch;
    if (group.rank() == 1) std::this_thread::sleep_for(milliseconds(300));
    group.barrier();
    if (group.rank() == 0) slow += watch.seconds() > kForgotten;
  });
  EXPECT_EQ(slow, 1) << "the foil";
}

}  // namespace
}  // namespace syncopate::test
