#include "syncopate/parallel/server/shards.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "syncopate/base/error.h"

namespace syncopate::parallel {
namespace {

Layout some_layout() {
  Layout layout;
  for (const auto& [name, size, decay] :
       {std::tuple{"bias", 5, false}, {"table", 1000, true}, {"head", 40, true}, {"norm", 16, false}}) {
    layout.entries.push_back({name, {}, layout.size, size, decay});
    layout.size += (size + 15) / 16 * 16;
  }
  return layout;
}

TEST(Shards, CoverTheArrayOnceAndAreBalanced) {
  const Layout layout = some_layout();
  for (const int servers : {1, 2, 3, 7}) {
    const auto shards = shards_of(layout, servers, false);
    int64_t at = 0;
    for (const Slice& shard : shards) {
      EXPECT_EQ(shard.begin, at);
      EXPECT_LE(std::abs(shard.size() - layout.size / servers), 32);
      at = shard.end;
    }
    EXPECT_EQ(at, layout.size);
  }
}

TEST(Shards, OffsetsStartAtZeroInEachShard) {
  const Layout layout = some_layout();
  int64_t elements = 0;
  for (const Slice& shard : shards_of(layout, 3, false)) {
    const Layout part = part_of(layout, shard);
    ASSERT_FALSE(part.entries.empty());
    EXPECT_EQ(part.entries.front().offset, 0);
    for (const auto& entry : part.entries) elements += entry.size;
  }
  EXPECT_EQ(elements, 5 + 1000 + 40 + 16);
}

TEST(Shards, WholeTensorsAreNeverCut) {
  const Layout layout = some_layout();
  for (const int servers : {1, 2, 3, 4}) {  // four tensors
    size_t tensors = 0;
    for (const Slice& shard : shards_of(layout, servers, true)) {
      EXPECT_GT(shard.size(), 0);
      for (const auto& part : part_of(layout, shard).entries) {
        const auto whole = std::find_if(layout.entries.begin(), layout.entries.end(),
                                        [&](const auto& entry) { return entry.name == part.name; });
        EXPECT_EQ(whole->size, part.size);
        ++tensors;
      }
    }
    EXPECT_EQ(tensors, layout.entries.size());
  }
  EXPECT_THROW(shards_of(layout, 5, true), ConfigError);
  EXPECT_NO_THROW(shards_of(layout, 5, false));
  EXPECT_THROW(shards_of(layout, 500, false), ConfigError);
}

TEST(Shards, LayoutRoundTripsOverTheWire) {
  const Layout layout = some_layout(), copy = layout_from(to_text(layout));
  EXPECT_EQ(copy.size, layout.size);
  EXPECT_EQ(copy.type, layout.type);
  ASSERT_EQ(copy.entries.size(), layout.entries.size());
  for (size_t i = 0; i < copy.entries.size(); ++i) {
    EXPECT_EQ(copy.entries[i].name, layout.entries[i].name);
    EXPECT_EQ(copy.entries[i].offset, layout.entries[i].offset);
    EXPECT_EQ(copy.entries[i].size, layout.entries[i].size);
    EXPECT_EQ(copy.entries[i].decay, layout.entries[i].decay);
  }
}

}  // namespace
}  // namespace syncopate::parallel
