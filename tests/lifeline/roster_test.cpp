#include "syncopate/lifeline/roster.h"

#include <gtest/gtest.h>

namespace syncopate::lifeline {
namespace {

using std::chrono::milliseconds;

class RosterTest : public testing::Test {
 protected:
  RosterTest() {
    for (int rank = 0; rank < 4; ++rank) roster.joined(rank, start);
    roster.status(1, {3, "forward"}, start);
    roster.status(2, {3, "backward"}, start);
  }
  Roster::Time start = std::chrono::steady_clock::now();
  Roster roster{4, milliseconds(9000), start};
};

TEST_F(RosterTest, NobodyIsOverdueBeforeTheTimeout) {
  EXPECT_FALSE(roster.overdue(start + milliseconds(9000)));
  for (const int rank : {0, 1, 3}) roster.beat(rank, true, start + milliseconds(5000));
  const auto late = roster.overdue(start + milliseconds(9500));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->sentence, "rank 2 did not answer for 9.5 s during backward of step 3");
  roster.left(2);
  EXPECT_FALSE(roster.overdue(start + milliseconds(9500))) << "who said goodbye need not answer";
}

TEST_F(RosterTest, NamesSilentRanksOnceEach) {
  EXPECT_TRUE(roster.newly_silent(start + kSilence).empty());
  const Roster::Time later = start + kSilence + milliseconds(1);
  for (const int rank : {0, 2}) roster.beat(rank, true, later);
  roster.left(3);
  EXPECT_EQ(roster.newly_silent(later), std::vector<int>{1});
  EXPECT_TRUE(roster.newly_silent(later).empty()) << "it was named";
  roster.status(1, {4, "forward"}, later);
  EXPECT_EQ(roster.newly_silent(later + kSilence + milliseconds(1)), (std::vector<int>{0, 1, 2}));
}

TEST_F(RosterTest, ServerPauseBlamesNobody) {
  roster.excuse(std::chrono::seconds(100));
  EXPECT_FALSE(roster.overdue(start + milliseconds(100500)));
}

TEST_F(RosterTest, BlamesTheSilentRankBeforeTheBusyOne) {
  const Roster::Time now = start + milliseconds(8000);
  roster.beat(0, true, now);
  roster.beat(1, false, now);
  roster.beat(3, true, now);
  EXPECT_EQ(roster.culprit(0, "all_reduce", 8, "h:1", now).rank, 2);
  roster.beat(2, true, now);
  EXPECT_EQ(roster.culprit(0, "all_reduce", 8, "h:1", now).rank, 1);
  roster.beat(1, true, now);
  const Failure mutual = roster.culprit(0, "all_reduce", 8, "h:1", now);
  EXPECT_EQ(mutual.rank, 0);
  EXPECT_NE(mutual.sentence.find("waited 8 s in all_reduce"), std::string::npos) << mutual.sentence;
  EXPECT_NE(mutual.sentence.find("all others were waiting too"), std::string::npos) << mutual.sentence;
  roster.left(3);
  const std::string early = roster.culprit(0, "all_reduce", 8, "h:1", now).sentence;
  EXPECT_NE(early.find("while rank 3 had finished"), std::string::npos) << early;
}

TEST(Roster, BlamesRanksThatNeverJoinedFirst) {
  const Roster::Time now = std::chrono::steady_clock::now();
  Roster roster(3, milliseconds(9000), now);
  roster.joined(0, now);
  roster.joined(1, now);
  EXPECT_EQ(roster.culprit(0, "the rendezvous", 9, "h:1", now).rank, 2);
  EXPECT_FALSE(roster.all_joined());
  roster.joined(2, now);
  EXPECT_TRUE(roster.all_joined());
}

}  // namespace
}  // namespace syncopate::lifeline
