#include "syncopate/base/share.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(Share, SharesMakeUpTheWhole) {
  for (const int64_t count : {0, 1, 7, 63, 64, 65, 1000, 4096, 100'003}) {
    for (const int ranks : {1, 2, 3, 4, 7, 16}) {
      for (const int64_t grain : {1, 16, 64, 512}) {
        int64_t end = 0, least = count, most = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const Share share = share_of(count, rank, ranks, grain);
          EXPECT_EQ(share.begin, end);
          EXPECT_GE(share.size(), 0);
          EXPECT_TRUE(share.end == count || share.end % grain == 0);
          end = share.end;
          least = std::min(least, share.size());
          most = std::max(most, share.size());
        }
        EXPECT_EQ(end, count);
        EXPECT_LT(most - least, 2 * grain) << count << " by " << ranks << " in " << grain;
      }
    }
  }
}

TEST(Share, GrainsStayWhole) {
  EXPECT_EQ(share_of(10, 0, 3).end, 3);
  EXPECT_EQ(share_of(10, 0, 3, 4).end, 4) << "the foil: a third is cut otherwise in grains";
  EXPECT_EQ(share_of(10, 2, 3, 4).size(), 2);
  EXPECT_EQ(share_of(3, 0, 2, 4).size(), 0);
  EXPECT_EQ(share_of(3, 1, 2, 4).size(), 3);
}

}  // namespace
}  // namespace syncopate
