#include "syncopate/lifeline/roster.h"

#include <gtest/gtest.h>

namespace syncopate::lifeline {
namespace {

using std::chrono::milliseconds;

class RollTest : public testing::Test {
 protected:
  RollTest() {
    for (int rank = 0; rank < 4; ++rank) roll.joined(rank, start);
    roll.status(1, {3, "forward"}, start);
    roll.status(2, {3, "backward"}, start);
  }
  Roster::Time start = std::chrono::steady_clock::now();
  Roster roll{4, milliseconds(9000), start};
};

TEST_F(RollTest, NobodyIsOverdueBeforeTheTimeout) {
  EXPECT_FALSE(roll.overdue(start + milliseconds(9000)));
  for (const int rank : {0, 1, 3}) roll.beat(rank, true, start + milliseconds(5000));
  const auto late = roll.overdue(start + milliseconds(9500));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->sentence, "rank 2 did not answer for 9.5 s during backward of step 3");
  roll.left(2);
  EXPECT_FALSE(roll.overdue(start + milliseconds(9500))) << "who said goodbye need not answer";
}

TEST_F(RollTest, ServerPauseBlamesNobody) {
  roll.excuse(std::chrono::seconds(100));
  EXPECT_FALSE(roll.overdue(start + milliseconds(100500)));
}

TEST_F(RollTest, BlamesTheSilentRankBeforeTheBusyOne) {
  const Roster::Time now = start + milliseconds(8000);
  roll.beat(0, true, now);
  roll.beat(1, false, now);
  roll.beat(3, true, now);
  EXPECT_EQ(roll.culprit(0, "all_reduce", 8, "h:1", now).rank, 2);
  roll.beat(2, true, now);
  EXPECT_EQ(roll.culprit(0, "all_reduce", 8, "h:1", now).rank, 1);
  roll.beat(1, true, now);
  const Failure mutual = roll.culprit(0, "all_reduce", 8, "h:1", now);
  EXPECT_EQ(mutual.rank, 0);
  EXPECT_NE(mutual.sentence.find("waited 8 s in all_reduce"), std::string::npos) << mutual.sentence;
  EXPECT_NE(mutual.sentence.find("all others were waiting too"), std::string::npos) << mutual.sentence;
  roll.left(3);
  const std::string early = roll.culprit(0, "all_reduce", 8, "h:1", now).sentence;
  EXPECT_NE(early.find("while rank 3 had finished"), std::string::npos) << early;
}

TEST(Roster, BlamesRanksThatNeverJoinedFirst) {
  const Roster::Time now = std::chrono::steady_clock::now();
  Roster roll(3, milliseconds(9000), now);
  roll.joined(0, now);
  roll.joined(1, now);
  EXPECT_EQ(roll.culprit(0, "the rendezvous", 9, "h:1", now).rank, 2);
  EXPECT_FALSE(roll.all_joined());
  roll.joined(2, now);
  EXPECT_TRUE(roll.all_joined());
}

}  // namespace
}  // namespace syncopate::lifeline
