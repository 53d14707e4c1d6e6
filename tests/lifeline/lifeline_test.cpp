#include "syncopate/lifeline/lifeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/lifeline/server.h"
#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

using lifeline::Cause;
using lifeline::Failure;
using lifeline::Lifeline;
using lifeline::LifelineServer;
using std::chrono::milliseconds;

constexpr milliseconds kLong(60000);
constexpr milliseconds kShort(1000);

lifeline::LifelineServerOptions options(int size, milliseconds timeout = kLong) {
  lifeline::LifelineServerOptions where;
  where.size = size;
  where.timeout = timeout;
  return where;
}

std::unique_ptr<Lifeline> line(int port, int rank, int size, milliseconds timeout = kLong,
                               const std::string& key = "") {
  return std::make_unique<Lifeline>(
      lifeline::LifelineOptions{{"127.0.0.1", port}, rank, size, timeout, kLong, key, {}});
}

Variables child(const std::string& mode, int port, int rank, int size, milliseconds timeout = kLong) {
  return {{"SYNCOPATE_TEST_MODE", mode},
          {"SYNCOPATE_TEST_PORT", std::to_string(port)},
          {"SYNCOPATE_TEST_RANK", std::to_string(rank)},
          {"SYNCOPATE_TEST_SIZE", std::to_string(size)},
          {"SYNCOPATE_TEST_TIMEOUT", std::to_string(timeout.count())}};
}

/// What the child processes of these tests do: never a test of its own.
TEST(LifelineChild, DISABLED_Main) {
  const std::string mode = variable("SYNCOPATE_TEST_MODE");
  const int port = std::stoi(variable("SYNCOPATE_TEST_PORT")),
            rank = std::stoi(variable("SYNCOPATE_TEST_RANK"));
  const int size = std::stoi(variable("SYNCOPATE_TEST_SIZE"));
  const milliseconds timeout(std::stoi(variable("SYNCOPATE_TEST_TIMEOUT")));
  std::unique_ptr<LifelineServer> server;
  if (mode == "host") {
    lifeline::LifelineServerOptions where = options(size, timeout);
    where.port = port;
    where.host_rank = 0;
    server = std::make_unique<LifelineServer>(where);
  }
  const auto mine = line(port, rank, size, timeout);
  mine->status(17, "backward");
  mine->set("ready", "yes");
  if (mode == "host") mine->status(5, "evaluation");
  while (true) ::pause();
}

std::string sentence(const std::optional<Failure>& failure) {
  return failure ? failure->sentence : "no failure";
}

int free_port() { return LifelineServer(options(1)).port(); }

TEST(Lifeline, StoreSetsGetsAddsChecksAndErases) {
  LifelineServer server(options(2));
  const auto one = line(server.port(), 0, 2), two = line(server.port(), 1, 2);
  const std::string binary("a\0b\xff", 4);
  one->set("key", binary);
  EXPECT_EQ(two->get("key", kLong), binary);
  EXPECT_EQ(one->add("count", 5), 5);
  EXPECT_EQ(two->add("count", -2), 3);
  EXPECT_EQ(one->get("count", kLong), "3");
  EXPECT_TRUE(two->exist({"key", "count"}));
  EXPECT_FALSE(two->exist({"key", "absent"}));
  const int64_t before = one->count();
  EXPECT_TRUE(one->erase("key"));
  EXPECT_FALSE(one->erase("key"));
  EXPECT_EQ(two->count(), before - 1);
  EXPECT_EQ(one->get("count", kLong), "3");
}

TEST(Lifeline, GetWaitsForTheKeyAndGivesUpAtItsDeadline) {
  LifelineServer server(options(2));
  const auto one = line(server.port(), 0, 2), two = line(server.port(), 1, 2);
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(100));
    two->set("late", "here");
  });
  EXPECT_EQ(one->get("late", kLong), "here");
  later.join();
  EXPECT_THROW(one->get("never", milliseconds(100)), CommError);
  EXPECT_EQ(one->get("late", kLong), "here") << "a late answer must not be taken for another's";
}

TEST(Lifeline, NamesAKilledProcessAndItsPhase) {
  LifelineServer server(options(3));
  const auto zero = line(server.port(), 0, 3), one = line(server.port(), 1, 3);
  Child two("LifelineChild", child("member", server.port(), 2, 3));
  zero->get("ready", kLong);
  EXPECT_FALSE(zero->failure());
  two.kill(SIGKILL);
  for (const auto* survivor : {&zero, &one}) {
    const auto failure = (*survivor)->await_failure(kLong);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->rank, 2);
    EXPECT_EQ(failure->cause, Cause::kDied);
    EXPECT_EQ(failure->sentence, "rank 2 died during backward of step 17");
    EXPECT_THROW((*survivor)->check(), CommError);
    EXPECT_THROW((*survivor)->get("never", kLong), CommError) << "the store ends with the run";
  }
  EXPECT_EQ(sentence(server.failure()), "rank 2 died during backward of step 17");
}

TEST(Lifeline, NamesAStoppedProcessAfterTheTimeout) {
  const milliseconds timeout(4000);
  LifelineServer server(options(2, timeout));
  const auto zero = line(server.port(), 0, 2, timeout);
  Child one("LifelineChild", child("member", server.port(), 1, 2, timeout));
  zero->get("ready", kLong);
  one.kill(SIGSTOP);
  const auto failure = zero->await_failure(kLong);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->cause, Cause::kHung);
  EXPECT_NE(failure->sentence.find("rank 1 did not answer for 4"), std::string::npos) << failure->sentence;
  EXPECT_NE(failure->sentence.find("during backward of step 17"), std::string::npos) << failure->sentence;
}

TEST(Lifeline, ReportsTheDeathOfTheHostAndItsPhase) {
  const int port = free_port();
  Child zero("LifelineChild", child("host", port, 0, 2));
  const auto one = line(port, 1, 2);
  one->get("ready", kLong);
  std::this_thread::sleep_for(milliseconds(200));
  zero.kill(SIGKILL);
  EXPECT_EQ(sentence(one->await_failure(kLong)), "rank 0 died during evaluation of step 5");
}

TEST(Lifeline, TimeoutBlamesTheRankThatIsNotWaiting) {
  const milliseconds timeout(10000);
  LifelineServer server(options(3, timeout));
  const auto zero = line(server.port(), 0, 3, timeout), one = line(server.port(), 1, 3, timeout),
             two = line(server.port(), 2, 3, timeout);
  one->status(3, "forward");
  const Lifeline::Waiting zero_waits(*zero), two_waits(*two);
  std::this_thread::sleep_for(milliseconds(1500));  // for the next beats to say so
  const Failure failure = zero->blame("all_reduce", 20);
  EXPECT_EQ(failure.sentence, "rank 1 did not answer for 20 s during forward of step 3");
  EXPECT_EQ(sentence(two->await_failure(kLong)), failure.sentence);
  EXPECT_EQ(two->blame("all_reduce", 21).sentence, failure.sentence) << "the first failure stays";
}

TEST(Lifeline, NamesARankThatNeverJoins) {
  LifelineServer server(options(3));
  const auto zero = line(server.port(), 0, 3), two = line(server.port(), 2, 3);
  try {
    zero->await_all(milliseconds(300));
    FAIL() << "rank 1 did not come";
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 of 3 did not come"), std::string::npos) << error.what();
  }
}

TEST(Lifeline, ForwardsTheFirstReport) {
  LifelineServer server(options(3));
  const auto zero = line(server.port(), 0, 3), one = line(server.port(), 1, 3);
  auto two = line(server.port(), 2, 3);
  one->status(7, "forward");
  one->fail("the file x is damaged", 3);
  EXPECT_TRUE(server.failure()) << "known when fail() is back";
  two->fail("something later", 5);
  two.reset();
  const auto failure = zero->await_failure(kLong);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->exit_code, 3);
  EXPECT_EQ(failure->sentence, "the file x is damaged");
  EXPECT_EQ(failure->for_others(), "rank 1 failed during forward of step 7: the file x is damaged");
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(server.failure()->exit_code, 3);
}

TEST(Lifeline, GoodbyeIsNoFailureButDisconnectingIs) {
  LifelineServer server(options(3));
  const auto zero = line(server.port(), 0, 3);
  auto one = line(server.port(), 1, 3), two = line(server.port(), 2, 3);
  one->goodbye();
  one.reset();
  EXPECT_TRUE(eventually([&] { return server.left(1); }));
  EXPECT_FALSE(zero->await_failure(milliseconds(200)));
  two.reset();
  EXPECT_EQ(sentence(zero->await_failure(kLong)), "rank 2 died during start-up");
}

TEST(Lifeline, ServerShutdownIsNoFailureButItsDeathIs) {
  for (const bool orderly : {true, false}) {
    auto server = std::make_unique<LifelineServer>(options(1));
    const auto zero = line(server->port(), 0, 1);
    if (orderly) server->close();
    server.reset();
    EXPECT_EQ(sentence(zero->await_failure(orderly ? milliseconds(300) : kLong)),
              orderly ? "no failure" : "the launcher died during start-up");
  }
}

TEST(Lifeline, LastResortRunsWhenNobodyReacts) {
  LifelineServer server(options(3));
  const auto zero = line(server.port(), 0, 3), one = line(server.port(), 1, 3);
  auto two = line(server.port(), 2, 3);
  std::atomic<int> called{0}, wrongly_called{0}, heard{0};
  zero->watch([&](const Failure& failure) { called += failure.rank; }, milliseconds(300));
  one->watch([&](const Failure&) { ++wrongly_called; }, milliseconds(300));
  zero->listen([&] { ++heard; });
  two.reset();
  EXPECT_TRUE(one->await_failure(kLong));
  one->goodbye();  // reacts in time
  EXPECT_TRUE(eventually([&] { return called != 0; }));
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_EQ(called, 2);
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(wrongly_called, 0);
}

template <typename Act>
std::string complaint(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(Lifeline, NamesATakenPort) {
  const LifelineServer first(options(1));
  lifeline::LifelineServerOptions second = options(1);
  second.port = first.port();
  const std::string said = complaint([&] { const LifelineServer server(second); });
  EXPECT_EQ(said, fmt::format("port {} of 127.0.0.1 is taken by another program; choose another port",
                              first.port()));
  lifeline::LifelineServerOptions elsewhere = options(1);
  elsewhere.host = "192.0.2.1";  // a documentation address: nobody's
  EXPECT_NE(complaint([&] { const LifelineServer server(elsewhere); }).find("not an address of this machine"),
            std::string::npos);
}

TEST(Lifeline, UnreachableServerErrorNamesTheAddress) {
  const int port = free_port();
  const auto connect = [&] { Lifeline({{"127.0.0.1", port}, 0, 1, kLong, milliseconds(300), "", {}}); };
  EXPECT_NE(complaint(connect).find(fmt::format("cannot reach 127.0.0.1:{}", port)), std::string::npos);
}

TEST(Lifeline, WaitsForAServerThatStartsLater) {
  const int port = free_port();
  std::unique_ptr<LifelineServer> server;
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(300));
    lifeline::LifelineServerOptions where = options(1);
    where.port = port;
    server = std::make_unique<LifelineServer>(where);
  });
  const auto zero = line(port, 0, 1);
  later.join();
  EXPECT_EQ(zero->add("x", 1), 1);
}

TEST(Lifeline, RejectsWrongKeysSizesAndRanks) {
  lifeline::LifelineServerOptions where = options(2);
  where.key = "secret";
  LifelineServer server(where);
  const auto zero = line(server.port(), 0, 2, kLong, "secret");
  const auto refused = [&](int rank, int size, const std::string& key) {
    return complaint([&] { line(server.port(), rank, size, kLong, key); });
  };
  EXPECT_NE(refused(1, 2, "other").find("belongs to another run"), std::string::npos);
  EXPECT_NE(refused(1, 3, "secret").find("expects 3 workers but the run at"), std::string::npos);
  EXPECT_NE(refused(0, 2, "secret").find("rank 0 is already taken"), std::string::npos);
  lifeline::Socket stranger =
      lifeline::connect_to({"127.0.0.1", server.port()}, std::chrono::steady_clock::now() + kLong);
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(::write(stranger.fd(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  EXPECT_EQ(zero->add("still here", 1), 1);
  EXPECT_FALSE(server.failure());
}

TEST(Lifeline, AWorkerThatIsNotOfTheRunIsTurnedAwayAndItsPlaceStaysFree) {
  lifeline::LifelineServerOptions where = options(2, kShort);
  where.key = std::string("secret");
  where.claims = {{"--lr", "0.1"}, {"--seed", "7"}, {"--out", ""}};
  std::atomic<int> heard = 0;
  where.on_refusal = [&](const std::string&) { ++heard; };
  LifelineServer server(where);
  const auto come = [&](int rank, const lifeline::Claims& claims, const std::string& key = "secret") {
    return std::make_unique<Lifeline>(
        lifeline::LifelineOptions{{"127.0.0.1", server.port()}, rank, 2, kShort, kLong, key, claims});
  };
  const auto zero = come(0, where.claims);
  const auto code_of = [&](const lifeline::Claims& claims, const std::string& key, std::string& sentence) {
    try {
      come(1, claims, key);
    } catch (const lifeline::RefusedError& error) {
      sentence = error.what();
      return static_cast<int>(error.code());
    }
    return 0;
  };
  std::string sentence;
  EXPECT_EQ(code_of({{"--lr", "0.2"}, {"--seed", "7"}}, "secret", sentence), 2);
  EXPECT_NE(sentence.find("--lr is 0.2 at rank 1 and 0.1 in the run"), std::string::npos) << sentence;
  EXPECT_EQ(code_of(where.claims, "guessed", sentence), 2);
  EXPECT_NE(sentence.find("another token"), std::string::npos) << sentence;
  EXPECT_EQ(heard, 2);
  // Whoever waits is told why nobody came.
  try {
    zero->await_all(kShort);
    FAIL() << "rank 1 did not come";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("did not know the token"), std::string::npos) << error.what();
  }
  // The foil: its own rank is let in, told or not told of what the run leaves open.
  LifelineServer waiting(where);
  const auto at = [&](int rank, const lifeline::Claims& claims) {
    return std::make_unique<Lifeline>(
        lifeline::LifelineOptions{{"127.0.0.1", waiting.port()}, rank, 2, kLong, kLong, "secret", claims});
  };
  const auto first = at(0, where.claims);
  EXPECT_THROW(at(1, {{"--lr", "0.1"}, {"--seed", "8"}}), lifeline::RefusedError);
  const auto second = at(1, {{"--seed", "7"}, {"--out", "a"}});
  first->await_all(kLong);
}

TEST(Lifeline, TheKeyNeverTravels) {
  // What a server sees of a worker is another proof each time, and none of them holds the key.
  const lifeline::Socket listener = lifeline::listen_at({"127.0.0.1", 0});
  const int port = lifeline::local_address(listener).port;
  const auto overheard = [&] {
    std::thread worker([&] {
      complaint([&] { Lifeline({{"127.0.0.1", port}, 0, 1, kShort, kShort, "open sesame", {}}); });
    });
    std::optional<lifeline::Socket> peer;
    while (!peer) peer = lifeline::accept_from(listener);
    lifeline::Channel channel(std::move(*peer));
    std::string all;
    const auto next = [&] {
      std::optional<std::string> frame;
      while (!frame && channel.fill()) frame = channel.next();
      all += frame.value_or("");
    };
    next();
    channel.send(lifeline::Packer(lifeline::FrameKind::kChallenge).text("the same number each time"));
    next();
    channel.close();
    worker.join();
    return all;
  };
  const std::string one = overheard(), two = overheard();
  EXPECT_GT(one.size(), 64u);
  EXPECT_EQ(one.find("sesame"), std::string::npos);
  EXPECT_NE(one, two) << "the worker's own number is fresh";
}

TEST(Lifeline, AServerThatDoesNotKnowTheKeyIsNotTrusted) {
  const lifeline::Socket listener = lifeline::listen_at({"127.0.0.1", 0});
  std::thread impostor([&] {
    std::optional<lifeline::Socket> peer;
    while (!peer) peer = lifeline::accept_from(listener);
    lifeline::Channel channel(std::move(*peer));
    while (!channel.next() && channel.fill()) continue;
    channel.send(lifeline::Packer(lifeline::FrameKind::kChallenge).text("number"));
    while (!channel.next() && channel.fill()) continue;
    channel.send(lifeline::Packer(lifeline::FrameKind::kWelcome).text("no proof").number(0));
    std::this_thread::sleep_for(milliseconds(200));
  });
  const auto connect = [&] {
    Lifeline({{"127.0.0.1", lifeline::local_address(listener).port}, 0, 1, kLong, kLong, "secret", {}});
  };
  EXPECT_NE(complaint(connect).find("without knowing the token"), std::string::npos);
  impostor.join();
}

TEST(Lifeline, RanksHaltBeforeTheSameStep) {
  constexpr int kRanks = 3;
  LifelineServer server(options(kRanks));
  std::vector<std::unique_ptr<Lifeline>> lines;
  for (int rank = 0; rank < kRanks; ++rank) lines.push_back(line(server.port(), rank, kRanks));
  std::vector<std::vector<std::pair<int64_t, int64_t>>> halts(kRanks);
  const auto work = [&](int rank) {
    const auto index = static_cast<size_t>(rank);
    for (int64_t step = 0; step < 2000;) {
      if (rank == 1 && step == 20 && halts[1].empty()) lines[1]->wish(2);  // each is at another step then
      if (const int64_t wishes = lines[index]->begin(step)) {
        halts[index].emplace_back(step, wishes);
        if (wishes & 1) return;
        lines[index]->wish(1);  // all of them at once, and again while others are on their way
        continue;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200 * (rank + 1)));
      ++step;
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
  ASSERT_GE(halts[0].size(), 2u);
  EXPECT_GE(halts[0][0].first, 20);
  EXPECT_EQ(halts[0][0].second, 2);
  EXPECT_EQ(halts[0].back().second & 1, 1);
  EXPECT_EQ(halts[1], halts[0]);
  EXPECT_EQ(halts[2], halts[0]);
}

TEST(Lifeline, WaitingForAMeetingEndsWithTheRun) {
  LifelineServer server(options(2));
  const auto zero = line(server.port(), 0, 2);  // rank 1 never says how far it is
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(100));
    server.declare(lifeline::died(1, {}));
  });
  zero->wish(1);
  const auto go_on = [&] {
    for (int64_t step = 0; step < int64_t{1} << 40; ++step) zero->begin(step);
  };
  EXPECT_THROW(go_on(), CommError);
  killer.join();
}

TEST(Lifeline, ParsesOnlyWholeAddresses) {
  EXPECT_EQ(lifeline::parse_address("node1:29500")->text(), "node1:29500");
  EXPECT_EQ(lifeline::parse_address("[::1]:80")->host, "::1");
  EXPECT_EQ(lifeline::parse_address("[::1]:80")->text(), "[::1]:80");
  for (const char* bad : {"", "node1", ":80", "node1:", "node1:0", "node1:65536", "node1:8x", "::1:80"}) {
    EXPECT_FALSE(lifeline::parse_address(bad)) << bad;
  }
}

}  // namespace
}  // namespace syncopate::test
