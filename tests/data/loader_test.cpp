#include "syncopate/data/loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "syncopate/base/clock.h"
#include "syncopate/base/error.h"

namespace syncopate::data {
namespace {

using Ids = std::vector<int64_t>;

/// Example i is the number i; example `bad` cannot be read; collating takes `seconds`.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size, int64_t bad = -1, double seconds = 0)
      : size_(size), bad_(bad), seconds_(seconds) {}
  int64_t size() const override { return size_; }
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t) const override {
    ++collated;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    tensor::Batch batch;
    batch.ids.assign(ids.begin(), ids.end());
    for (const int64_t id : ids) {
      if (id == bad_) throw DataError("example {} is damaged", id);
    }
    batch.fields["values"] = at::tensor(batch.ids, at::kLong);
    return batch;
  }
  mutable std::atomic<int> collated{0};

 private:
  int64_t size_, bad_;
  double seconds_;
};

std::shared_ptr<const Dataset> numbers(int64_t size) { return std::make_shared<Numbers>(size); }

Ids ids_of(const StepBatches& batches) {
  Ids ids;
  for (const tensor::Batch& micro : batches.micro) ids.insert(ids.end(), micro.ids.begin(), micro.ids.end());
  return ids;
}

TEST(Loader, GivesWhatTheSamplerSays) {
  Loader loader(numbers(21), {.global_batch = 8, .workers = 2, .rank = 1, .accumulate = 2, .seed = 5});
  Sampler sampler(21, 8, 5, true);
  EXPECT_EQ(loader.steps_per_epoch(), 3);
  for (int64_t step = 0; step < 10; ++step) {
    const StepBatches batches = loader.next();
    EXPECT_EQ(batches.step, step);
    EXPECT_EQ(batches.epoch, step / 3);
    EXPECT_EQ(batches.last_of_epoch, step % 3 == 2);
    EXPECT_EQ(batches.global_examples, step % 3 == 2 ? 5 : 8);
    const std::vector<Ids> expected = sampler.micro_batches(step, 2, 1, 2);
    ASSERT_EQ(batches.micro.size(), 2U);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(batches.micro[k].ids, expected[k]);
      EXPECT_TRUE(at::equal(batches.micro[k].at("values"), at::tensor(expected[k], at::kLong)));
    }
  }
}

TEST(Loader, SeekGivesWhatARunThatNeverStoppedGets) {
  const LoaderOptions options{.global_batch = 4, .seed = 5};
  Loader whole(numbers(10), options);
  std::vector<Ids> expected;
  for (int step = 0; step < 12; ++step) expected.push_back(ids_of(whole.next()));
  Loader resumed(numbers(10), options);
  for (const int64_t start : {7, 0, 3, 11, 2}) {
    resumed.seek(start);
    for (int64_t step = start; step < std::min<int64_t>(12, start + 3); ++step) {
      const StepBatches batches = resumed.next();
      EXPECT_EQ(batches.step, step);
      EXPECT_EQ(ids_of(batches), expected[static_cast<size_t>(step)]);
    }
  }
  Loader other(numbers(10), {.global_batch = 4, .seed = 6});
  EXPECT_NE(ids_of(other.next()), expected[0]) << "the foil: another seed";
}

TEST(Loader, AWorkerWithoutExamplesGetsNoBatch) {
  const LoaderOptions options{.global_batch = 4, .workers = 3, .rank = 2, .shuffle = false};
  Loader loader(numbers(6), options);
  EXPECT_EQ(ids_of(loader.next()), Ids{3});
  const StepBatches last = loader.next();
  EXPECT_TRUE(last.micro.empty());
  EXPECT_EQ(last.global_examples, 2);
  EXPECT_TRUE(last.last_of_epoch);
}

TEST(Loader, PreparesAheadButNotWithoutBound) {
  const auto data = std::make_shared<Numbers>(100);
  Loader loader(data, {.global_batch = 1, .prefetch = 3});
  const auto settles_at = [&](int count) {
    for (int i = 0; i < 400 && data->collated < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return data->collated.load();
  };
  EXPECT_EQ(settles_at(3), 3);
  loader.next();
  EXPECT_EQ(settles_at(4), 4);
}

TEST(Loader, AFailureIsThrownAfterTheStepsBeforeIt) {
  Loader loader(std::make_shared<Numbers>(6, 4), {.global_batch = 2, .shuffle = false});
  EXPECT_EQ(ids_of(loader.next()), (Ids{0, 1}));
  EXPECT_EQ(ids_of(loader.next()), (Ids{2, 3}));
  EXPECT_THROW(loader.next(), DataError);
  EXPECT_THROW(loader.next(), DataError) << "it does not hang or skip";
  loader.seek(0);
  EXPECT_EQ(ids_of(loader.next()), (Ids{0, 1}));
}

TEST(Loader, KnowsHowLongItWaited) {
  Loader slow(std::make_shared<Numbers>(4, -1, 0.05), {.global_batch = 1});
  slow.next();
  slow.next();
  EXPECT_GT(slow.waited_seconds(), 0.03);
  Loader fast(numbers(4), {.global_batch = 1});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  fast.next();
  EXPECT_LT(fast.waited_seconds(), slow.waited_seconds());
}

TEST(Loader, EndsPromptlyWhereverItStands) {
  const Stopwatch watch;
  for (int i = 0; i < 50; ++i) {
    Loader loader(numbers(1000), {.global_batch = 10, .seed = static_cast<uint64_t>(i)});
    for (int k = 0; k < i % 5; ++k) loader.next();
    if (i % 3 == 0) loader.seek(i);
  }
  EXPECT_LT(watch.seconds(), 10);
}

TEST(Loader, RefusesOptionsOutOfRange) {
  const auto refuses = [](LoaderOptions options) { EXPECT_THROW(Loader(numbers(4), options), ConfigError); };
  refuses({.global_batch = 0});
  refuses({.global_batch = 1, .workers = 0});
  refuses({.global_batch = 1, .workers = 2, .rank = 2});
  refuses({.global_batch = 1, .rank = -1});
  refuses({.global_batch = 1, .accumulate = 0});
  refuses({.global_batch = 1, .prefetch = 0});
  EXPECT_THROW(Loader(numbers(0), {.global_batch = 1}), DataError);
}

}  // namespace
}  // namespace syncopate::data
