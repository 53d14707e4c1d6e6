// Tokens that are kept in files are those of memory, whatever the task.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/tasks/setup.h"
#include "tests/support/support.h"
#include "tests/support/tasks.h"

namespace syncopate::tasks {
namespace {

class CachedTexts : public testing::TestWithParam<std::string> {
 protected:
  TaskSetup made(const std::string& cache, const std::string& validation = "0.1") {
    spec::RunSpec spec;
    spec.task.name = GetParam();
    spec.task.data = data_;
    if (classifies()) {
      spec.task.text = "text";
      spec.task.label = "label";
    }
    spec.task.cache = cache;
    spec.task.auto_cache = (folder_ / "by itself").string();
    spec.task.validation = validation;
    spec.task.max_length = 24;
    spec.model.vocab_size = 300;
    spec.complete();
    const auto group = comm::open_alone();
    return family_of(spec.task.name).make(spec, *group);
  }
  bool says(const TaskSetup& setup, const std::string& part) {
    return std::any_of(setup.notes.begin(), setup.notes.end(),
                       [&](const std::string& note) { return note.find(part) != note.npos; });
  }

  static bool classifies() { return GetParam() == "csv"; }

  test::TempDir folder_;
  std::string data_ =
      classifies() ? test::small_table(folder_ / "data") : test::small_corpus(folder_ / "data");
};

TEST_P(CachedTexts, GivesTheSameRunAsMemory) {
  const TaskSetup memory = made("off"), first = made(folder_ / "cache"), second = made(folder_ / "cache");
  EXPECT_TRUE(says(first, "tokens kept in "));
  EXPECT_TRUE(says(second, "tokens read from "));
  EXPECT_FALSE(says(memory, "tokens"));
  for (const TaskSetup* cached : {&first, &second}) {
    EXPECT_EQ(cached->fingerprint, memory.fingerprint) << "the vocabulary learned";
    ASSERT_TRUE(cached->validation);
    EXPECT_EQ(cached->train->fingerprint(), memory.train->fingerprint());
    EXPECT_EQ(cached->test->fingerprint(), memory.test->fingerprint());
    EXPECT_EQ(cached->validation->fingerprint(), memory.validation->fingerprint());
    const std::vector<int64_t> ids{1, 0, 2};
    const tensor::Batch batch = cached->train->collate(ids, 5);
    for (const auto& [name, field] : memory.train->collate(ids, 5).fields)
      EXPECT_TRUE(at::equal(batch.at(name), field)) << name;
    EXPECT_EQ(cached->train->length(1), memory.train->length(1));
    EXPECT_EQ(std::vector<std::string>(cached->notes.begin(), cached->notes.end() - 1), memory.notes);
  }
  const TaskSetup other = made(folder_ / "cache", "off");
  EXPECT_FALSE(other.validation);
  EXPECT_NE(other.train->fingerprint(), memory.train->fingerprint()) << "the foil";
}

TEST_P(CachedTexts, UsesMemoryWhereNothingCanBeKept) {
  test::write_text(folder_ / "file", "");
  const TaskSetup kept = made(folder_ / "file"), memory = made("off");
  EXPECT_TRUE(says(kept, "warning: tokens cannot be kept in "));
  EXPECT_EQ(kept.train->fingerprint(), memory.train->fingerprint());
  EXPECT_FALSE(says(made("auto"), "tokens")) << "so little text is not worth it";
}

INSTANTIATE_TEST_SUITE_P(Tasks, CachedTexts, testing::Values("mlm", "clm", "csv"),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace syncopate::tasks
