#include "syncopate/data/subset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/base/rng.h"

namespace syncopate::data {
namespace {

using Ids = std::vector<int64_t>;

/// "values" are the ids, "drawn" what the draw makes of them.
class Drawn : public Dataset {
 public:
  int64_t size() const override { return 10; }
  uint64_t fingerprint() const override { return 10; }
  tensor::Batch collate(std::span<const int64_t> ids, uint64_t draw) const override {
    tensor::Batch batch;
    batch.ids.assign(ids.begin(), ids.end());
    Ids drawn;
    for (const int64_t id : ids) drawn.push_back(static_cast<int64_t>(mix_key(draw, id) >> 1));
    batch.fields = {{"values", at::tensor(batch.ids, at::kLong)}, {"drawn", at::tensor(drawn, at::kLong)}};
    return batch;
  }
};

TEST(Subset, RenumbersExamplesButKeepsTheirRandomDraws) {
  const auto whole = std::make_shared<Drawn>();
  const Subset subset(whole, {7, 2, 9});
  EXPECT_EQ(subset.size(), 3);
  const tensor::Batch batch = subset.collate(Ids{2, 0, 2}, 5);
  EXPECT_EQ(batch.ids, (Ids{2, 0, 2}));
  EXPECT_TRUE(at::equal(batch.at("values"), at::tensor({9, 7, 9}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.at("drawn"), whole->collate(Ids{9, 7, 9}, 5).at("drawn")));
  EXPECT_FALSE(at::equal(batch.at("drawn"), whole->collate(Ids{2, 0, 2}, 5).at("drawn"))) << "the foil";
  EXPECT_EQ(subset.collate({}, 5).size(), 0);
}

TEST(Subset, FingerprintIsOfTheChoiceAndTheWhole) {
  const auto whole = std::make_shared<Drawn>();
  EXPECT_EQ(Subset(whole, {7, 2}).fingerprint(), Subset(whole, {7, 2}).fingerprint());
  EXPECT_NE(Subset(whole, {7, 2}).fingerprint(), Subset(whole, {2, 7}).fingerprint());
  EXPECT_NE(Subset(whole, {7, 2}).fingerprint(), whole->fingerprint());
}

TEST(Subset, RejectsIndicesOutOfRange) {
  const auto whole = std::make_shared<Drawn>();
  EXPECT_THROW(Subset(whole, {10}), InternalError);
  EXPECT_THROW(Subset(whole, {-1}), InternalError);
  EXPECT_THROW(Subset(whole, {1}).collate(Ids{1}, 0), InternalError);
  EXPECT_EQ(Subset(whole, {}).size(), 0);
}

}  // namespace
}  // namespace syncopate::data
