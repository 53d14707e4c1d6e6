// Damaged inputs of the readers of text corpora, byte-level BPEs and images: thousands, the same every time.
#include "tests/data/fuzz_corpus.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace syncopate::data::test {
namespace {

constexpr int kInputs = 2000;

TEST(FuzzCorpus, EveryInputIsReadOrRefused) {
  uint64_t seed = 0;
  for (const FuzzTarget& target : corpus_targets()) {
    const syncopate::test::TempDir folder;
    EXPECT_NO_THROW(target.run(target.seed_text, folder.path())) << target.name << " accepts what is sound";
    const int refusals = fuzz(target, kInputs, ++seed);
    EXPECT_GT(refusals, kInputs / 20) << target.name << ": the damage must be felt";
    EXPECT_LT(refusals, kInputs) << target.name << ": some damage is harmless";
  }
}

}  // namespace
}  // namespace syncopate::data::test
