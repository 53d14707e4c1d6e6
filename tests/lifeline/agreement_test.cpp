// What ranks show each other at the rendezvous, and how they come to a halt: the bookkeeping alone.
#include <gtest/gtest.h>

#include "syncopate/lifeline/claims.h"
#include "syncopate/lifeline/meetings.h"
#include "syncopate/lifeline/proof.h"

namespace syncopate::lifeline {
namespace {

TEST(Proof, IsHmacSha256) {
  // RFC 4231, test case 2.
  EXPECT_EQ(prove("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_NE(prove("Jefe", "what do you want for nothing?"), prove("Jefe", "what do ya want for nothing?"));
  EXPECT_EQ(prove("", "").size(), 64u) << "no key is a key like others";
}

TEST(Proof, ComparesWhole) {
  EXPECT_TRUE(proves("abc", "abc"));
  EXPECT_FALSE(proves("abc", "abd"));
  EXPECT_FALSE(proves("ab", "abc"));
  EXPECT_FALSE(proves("", "abc"));
}

TEST(Proof, KeysAreFresh) {
  EXPECT_EQ(random_key().size(), 32u);
  EXPECT_NE(random_key(), random_key());
}

TEST(Claims, DifferencesAreNamedWithBothValues) {
  const Claims run{{"--lr", "0.1"}, {"--seed", "1"}, {"--out", ""}};
  EXPECT_EQ(difference(run, run, 1), "");
  EXPECT_EQ(difference({{"--seed", "1"}, {"--lr", "0.2"}}, run, 1),
            "--lr is 0.2 at rank 1 and 0.1 in the run");
  EXPECT_EQ(difference({{"--lr", "0.1"}, {"--out", "x"}}, run, 2), "") << "not told on one side";
}

TEST(Claims, ManyDifferencesAreCut) {
  Claims run, rank;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    run.push_back({name, "1"});
    rank.push_back({name, "2"});
  }
  EXPECT_NE(difference(rank, run, 3).find("c is 2 at rank 3 and 1 in the run, and 2 more"), std::string::npos)
      << difference(rank, run, 3);
}

TEST(Meetings, AreAfterTheFurthest) {
  Meetings meetings(3);
  EXPECT_TRUE(meetings.wish(1));
  EXPECT_FALSE(meetings.wish(2)) << "all have been asked";
  EXPECT_FALSE(meetings.here(0, 4));
  EXPECT_FALSE(meetings.here(2, 9));
  const auto meeting = meetings.here(1, 7);
  ASSERT_TRUE(meeting);
  EXPECT_EQ(meeting->step, 9);
  EXPECT_EQ(meeting->wishes, 3);
}

TEST(Meetings, WishesOnTheWayWaitUntilAllHaveMet) {
  Meetings meetings(2);
  meetings.wish(1);
  meetings.here(0, 1);
  ASSERT_TRUE(meetings.here(1, 1));
  EXPECT_FALSE(meetings.wish(2));
  EXPECT_FALSE(meetings.met(0)) << "rank 1 is on its way";
  EXPECT_TRUE(meetings.met(1)) << "asked again";
  meetings.here(0, 1);
  const auto next = meetings.here(1, 3);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->step, 3);
  EXPECT_EQ(next->wishes, 2);
  EXPECT_FALSE(meetings.met(0));
  EXPECT_FALSE(meetings.met(1)) << "nobody wishes another";
  EXPECT_TRUE(meetings.wish(1));
}

}  // namespace
}  // namespace syncopate::lifeline
