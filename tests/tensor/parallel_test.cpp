#include "syncopate/tensor/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

namespace syncopate::tensor {
namespace {

/// How many threads worked on 0..99 in parts of at least `grain`, each element once.
size_t threads_for(int64_t grain) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<int> done(100, 0);
  parallel_for(0, 100, grain, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) ++done[static_cast<size_t>(i)];
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(done, std::vector<int>(100, 1));
  return threads.size();
}

TEST(ParallelFor, SharesTheWorkAmongThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  EXPECT_EQ(threads_for(1), 2u);
  EXPECT_EQ(threads_for(100), 1u);  // not worth a second
  at::set_num_threads(1);
  EXPECT_EQ(threads_for(1), 1u);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace syncopate::tensor
