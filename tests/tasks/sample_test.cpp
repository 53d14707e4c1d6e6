#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "syncopate/tasks/setup.h"
#include "syncopate/tasks/task_files.h"

namespace syncopate::tasks {
namespace {

using Ids = std::vector<int64_t>;

spec::RunSpec with_limit(int64_t test_limit, int64_t seed = 0) {
  spec::RunSpec spec;
  spec.task.test_limit = test_limit;
  spec.train.seed = seed;
  return spec;
}

TEST(TestLimit, SamplesTheWholeOfSortedData) {
  const Ids chosen = sampled_examples(10000, 500);
  ASSERT_EQ(chosen.size(), 500U);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  EXPECT_EQ(std::adjacent_find(chosen.begin(), chosen.end()), chosen.end()) << "each once";
  for (int64_t tenth = 0; tenth < 10; ++tenth) {
    const auto count =
        std::count_if(chosen.begin(), chosen.end(), [&](int64_t id) { return id / 1000 == tenth; });
    EXPECT_NEAR(count, 50, 25) << "the classes of a sorted file are all there";
  }
  Ids first(500);
  std::iota(first.begin(), first.end(), 0);
  EXPECT_NE(chosen, first) << "the foil";
}

TEST(TestLimit, SampleIsTheSameForEverySeed) {
  std::vector<std::string> one(100), other(100);
  for (size_t i = 0; i < one.size(); ++i) one[i] = other[i] = std::to_string(i);
  const Ids kept = keep_sample(one, with_limit(7, 1));
  keep_sample(other, with_limit(7, 2));
  EXPECT_EQ(one, other);
  ASSERT_EQ(one.size(), 7U);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(one[i], std::to_string(kept[i]));
  EXPECT_NE(chosen_examples(100, 7, 1), chosen_examples(100, 7, 2)) << "unlike the training subset";
  const Ids larger = sampled_examples(100, 20);
  EXPECT_TRUE(std::includes(larger.begin(), larger.end(), kept.begin(), kept.end()));
}

TEST(TestLimit, PartsOfTheTestSplitKeepTheirExamples) {
  corpora::TextTask task;
  for (int i = 0; i < 100; ++i) task.test.push_back({.a = i < 30 ? "matched" : "mismatched", .b = {}});
  task.parts = {{"matched", 0, 30}, {"mismatched", 30, 100}};
  task.parts = parts_among(task.parts, keep_sample(task.test, with_limit(40)));
  ASSERT_EQ(task.test.size(), 40U);
  ASSERT_EQ(task.parts.size(), 2U);
  EXPECT_EQ(task.parts[0].begin, 0);
  EXPECT_EQ(task.parts[0].end, task.parts[1].begin);
  EXPECT_EQ(task.parts[1].end, 40);
  EXPECT_GT(task.parts[0].end, 4) << "some of each";
  for (const corpora::TestPart& part : task.parts) {
    for (int64_t i = part.begin; i < part.end; ++i) EXPECT_EQ(task.test[static_cast<size_t>(i)].a, part.name);
  }
}

TEST(TestLimit, KeepsAllWithoutALimit) {
  for (const int64_t limit : {0, 5, 9}) {
    std::vector<int> items{1, 2, 3, 4, 5};
    EXPECT_EQ(keep_sample(items, with_limit(limit)), (Ids{0, 1, 2, 3, 4}));
    EXPECT_EQ(items, (std::vector<int>{1, 2, 3, 4, 5}));
  }
}

}  // namespace
}  // namespace syncopate::tasks
