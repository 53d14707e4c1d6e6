#include "syncopate/comm/metering/metered.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "syncopate/base/clock.h"
#include "syncopate/comm/metering/flights.h"
#include "syncopate/comm/operations/completion.h"
#include "tests/contract/ranks.h"
#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

using comm::Group;
using comm::Kind;
using comm::Metered;
using comm::Op;

constexpr int64_t kElements = 300'000;

struct Exchange {
  Kind kind;
  at::ScalarType type;
};

void exchange(Group& group, const Exchange& what) {
  at::Tensor mine = at::ones({kElements}, what.type);
  std::vector<at::Tensor> all;
  for (int r = 0; r < group.size(); ++r) all.push_back(at::ones({kElements}, what.type));
  const int root = group.size() - 1;
  const std::vector<at::Tensor> at_root = group.rank() == root ? all : std::vector<at::Tensor>{};
  switch (what.kind) {
    case Kind::kAllReduce:
      return group.all_reduce(mine, Op::kSum).wait();
    case Kind::kBroadcast:
      return group.broadcast(mine, root).wait();
    case Kind::kGather:
      return group.gather(at_root, mine, root).wait();
    case Kind::kScatter:
      return group.scatter(mine, at_root, root).wait();
    case Kind::kAllGather:
      return group.all_gather(all, mine).wait();
    default: {
      comm::Pending sending = group.send(mine, (group.rank() + 1) % group.size(), 0);
      group.receive(all[0], (group.rank() + group.size() - 1) % group.size(), 0).wait();
      return sending.wait();
    }
  }
}

const std::vector<Exchange> kExchanges = {
    {Kind::kAllReduce, at::kFloat}, {Kind::kAllReduce, at::kHalf}, {Kind::kAllReduce, at::kBFloat16},
    {Kind::kBroadcast, at::kFloat}, {Kind::kGather, at::kFloat},   {Kind::kScatter, at::kFloat},
    {Kind::kAllGather, at::kFloat}, {Kind::kSend, at::kFloat},
};

TEST(Metered, TellsAnObserverOfEveryOperation) {
  run_ranks(2, [](Group& inner) {
    Metered group(inner.split(0, inner.rank()));
    std::vector<comm::Operation> seen;
    exchange(group, {Kind::kAllReduce, at::kFloat});
    group.observe([&](const comm::Operation& operation) { seen.push_back(operation); });
    const auto part = group.part(0, group.rank());
    {
      const comm::Carrying carrying(comm::Payload::kGradients);
      exchange(*part, {Kind::kAllReduce, at::kFloat});
    }
    group.observe({});
    exchange(group, {Kind::kAllReduce, at::kFloat});
    ASSERT_EQ(seen.size(), 1u) << "neither before nor after";
    EXPECT_EQ(seen[0].kind, Kind::kAllReduce);
    EXPECT_EQ(seen[0].payload, comm::Payload::kGradients);
    EXPECT_EQ(seen[0].bytes, 4 * kElements);
    EXPECT_LE(seen[0].begin, seen[0].end);
  });
}

TEST(Metered, CountsCallsAndBytesByKind) {
  run_ranks(3, [](Group& plain) {
    // The decorated group is itself a group, over one of its own.
    Metered group(plain.split(0, plain.rank()));
    const comm::Meter before = group.meter();
    exchange(group, {Kind::kAllReduce, at::kFloat});
    exchange(group, {Kind::kAllReduce, at::kDouble});
    exchange(group, {Kind::kGather, at::kFloat});
    group.barrier();
    const comm::Meter meter = group.meter() - before;
    EXPECT_EQ(meter[Kind::kAllReduce].calls, 2);
    EXPECT_EQ(meter[Kind::kAllReduce].bytes, 2 * kElements * 12 * 2 / 3);
    EXPECT_EQ(meter[Kind::kGather].bytes, group.rank() == 2 ? 0 : kElements * 4);
    EXPECT_EQ(meter[Kind::kBarrier].calls, 1);
    EXPECT_EQ(meter.total().calls, 4);
    // A part counts into the same meter.
    const std::unique_ptr<Group> part = group.split(0, 0);
    exchange(*part, {Kind::kAllGather, at::kFloat});
    EXPECT_EQ(group.meter()[Kind::kAllGather].bytes, kElements * 4 * 2);
    plain.barrier();
  });
}

TEST(Metered, CountsBytesByWhatTheyCarry) {
  run_ranks(2, [](Group& plain) {
    Metered group(plain.split(0, plain.rank()));
    exchange(group, {Kind::kAllReduce, at::kFloat});  // nobody said: control
    {
      const comm::Carrying gradients(comm::Payload::kGradients);
      comm::Pending pending = group.all_reduce(at::ones({8}), Op::kSum);
      {
        const comm::Carrying parameters(comm::Payload::kParameters);
        group.all_gather({at::empty({2}), at::empty({2})}, at::ones({2})).wait();
      }
      pending.wait();
    }
    group.all_reduce(at::ones({2}), Op::kSum).wait();
    const comm::Meter meter = group.meter();
    const auto carried = [&](comm::Payload payload) { return meter.carried[static_cast<size_t>(payload)]; };
    EXPECT_EQ(carried(comm::Payload::kGradients), 32);
    EXPECT_EQ(carried(comm::Payload::kParameters), 8);
    EXPECT_EQ(carried(comm::Payload::kActivations), 0);
    EXPECT_EQ(carried(comm::Payload::kControl), meter.total().bytes - 40);
    // Control is no transfer, and a gather's size is that of all parts together.
    EXPECT_EQ(meter[Kind::kAllReduce].transfers, 1);
    EXPECT_EQ(meter[Kind::kAllReduce].size, 32);
    EXPECT_EQ(meter[Kind::kAllGather].size, 16);
    const comm::Meter copy = comm::Meter::of_numbers(meter.numbers());
    EXPECT_EQ(copy.numbers(), meter.numbers());
    EXPECT_NE(copy.numbers(), comm::Meter().numbers());
    plain.barrier();
  });
}

TEST(Flights, AreCoveredOnce) {
  EXPECT_DOUBLE_EQ(comm::covered({}), 0);
  EXPECT_DOUBLE_EQ(comm::covered({{5, 7}, {1, 3}, {2, 4}, {2.5, 3.5}}), 5);
  // Under way from 0 to 4 and from 6 to 7; blocked from 3 to 6.5: 0 to 3 and 6.5 to 7 were hidden.
  EXPECT_DOUBLE_EQ(comm::hidden({{0, 2}, {1, 4}, {6, 7}}, {{3, 6.5}}), 3.5);
  EXPECT_DOUBLE_EQ(comm::hidden({{0, 2}}, {{0, 1}, {0.5, 2}}), 0) << "waited for all of it";
}

/// An operation that ends by itself at a known moment.
class Clockwork : public comm::Pending::Work {
 public:
  explicit Clockwork(comm::Moment end) : end_(end) {}
  void wait() override {
    std::this_thread::sleep_until(end_);
    comm::note_end(end_);
  }

 private:
  comm::Moment end_;
};

using std::chrono::milliseconds;

class Sleep : public comm::Pending::Work {
 public:
  explicit Sleep(milliseconds time) : time_(time) {}
  void wait() override { std::this_thread::sleep_for(time_); }

 private:
  milliseconds time_;
};

/// Two ranks on paper: an operation blocks for a known time when it starts and for another when it is waited
/// for.
class SlowGroup : public Group {
 public:
  static constexpr milliseconds kStart{30}, kWait{60}, kReceive{150}, kBarrier{90}, kSplit{40}, kFlight{60};

  int rank() const override { return 0; }
  int size() const override { return 2; }
  comm::Pending all_reduce(at::Tensor, Op) override {
    std::this_thread::sleep_for(kStart);
    return comm::Pending(std::make_unique<Sleep>(kWait));
  }
  comm::Pending broadcast(at::Tensor, int) override {
    return comm::Pending(std::make_unique<Clockwork>(comm::Moment::clock::now() + kFlight));
  }
  comm::Pending gather(std::vector<at::Tensor>, at::Tensor, int) override { return {}; }
  comm::Pending scatter(at::Tensor, std::vector<at::Tensor>, int) override { return {}; }
  comm::Pending all_gather(std::vector<at::Tensor>, at::Tensor) override { return {}; }
  comm::Pending send(at::Tensor, int, int) override { return {}; }
  comm::Pending receive(at::Tensor, int, int) override {
    return comm::Pending(std::make_unique<Sleep>(kReceive));
  }
  void barrier() override { std::this_thread::sleep_for(kBarrier); }
  std::unique_ptr<Group> split(int, int) override {
    std::this_thread::sleep_for(kSplit);
    return std::make_unique<SlowGroup>();
  }
  void set_timeout(milliseconds) override {}
};

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

TEST(Metered, TellsHiddenFromExposedTime) {
  Metered group(std::make_unique<SlowGroup>());
  const comm::Carrying carrying(comm::Payload::kGradients);
  const at::Tensor mine = at::ones({4});
  const double flight = seconds(SlowGroup::kFlight);
  // It ended long before anybody waited: all of it was hidden, and no more than that.
  comm::Pending early = group.broadcast(mine, 0);
  std::this_thread::sleep_for(3 * SlowGroup::kFlight);
  early.wait();
  const comm::Meter first = group.meter();
  EXPECT_NEAR(first.hidden, flight, 0.4 * flight);
  EXPECT_NEAR(first[Kind::kBroadcast].in_flight, flight, 0.4 * flight);
  // Two at the same time count once; whoever waits at once hides nothing.
  comm::Pending one = group.broadcast(mine, 0), two = group.broadcast(mine, 0);
  one.wait();
  two.wait();
  const comm::Meter second = group.meter() - first;
  EXPECT_LT(second.hidden, 0.4 * flight);
  EXPECT_NEAR(second[Kind::kBroadcast].in_flight, flight, 0.4 * flight);
  EXPECT_GE(second.waited, 0.6 * flight);
  // One that does not tell its end and that nobody had to wait for: not hidden, but its bytes took a time.
  comm::Pending silent = group.send(mine, 1, 0);
  std::this_thread::sleep_for(SlowGroup::kFlight);
  silent.wait();
  const comm::Meter third = group.meter() - first - second;
  EXPECT_LT(third.hidden, 0.4 * flight);
  EXPECT_GE(third[Kind::kSend].in_flight, 0.9 * flight);
}

TEST(Metered, CountsBlockedSecondsToTheKindThatBlocked) {
  const Stopwatch watch;
  Metered group(std::make_unique<SlowGroup>());
  at::Tensor mine = at::ones({4});

  group.all_reduce(mine, Op::kSum).wait();
  EXPECT_GE(group.meter()[Kind::kAllReduce].seconds, seconds(SlowGroup::kStart + SlowGroup::kWait));
  EXPECT_EQ(group.meter()[Kind::kAllReduce].seconds, group.meter().total().seconds) << "and to no other";

  comm::Pending receiving = group.receive(mine, 1, 0);
  const double started = group.meter()[Kind::kReceive].seconds;
  // The time in which nobody waits is not counted: this is longer than the wait itself.
  std::this_thread::sleep_for(2 * SlowGroup::kReceive);
  EXPECT_EQ(group.meter()[Kind::kReceive].seconds, started);
  const comm::Meter before = group.meter();
  group.send(mine, 1, 0).wait();
  receiving.wait();
  const comm::Meter since = group.meter() - before;
  EXPECT_GE(since[Kind::kReceive].seconds, seconds(SlowGroup::kReceive));
  EXPECT_LT(since[Kind::kSend].seconds, seconds(SlowGroup::kReceive)) << "a foil: sending blocked nobody";
  EXPECT_EQ(since[Kind::kAllReduce].seconds, 0) << "a foil: nothing was reduced since";

  group.barrier();
  EXPECT_GE(group.meter()[Kind::kBarrier].seconds, seconds(SlowGroup::kBarrier));
  // A part counts into the same meter.
  const std::unique_ptr<Group> part = group.split(0, 0);
  EXPECT_GE(group.meter()[Kind::kSplit].seconds, seconds(SlowGroup::kSplit));
  part->all_reduce(mine, Op::kSum).wait();
  EXPECT_GE(group.meter()[Kind::kAllReduce].seconds, 2 * seconds(SlowGroup::kStart + SlowGroup::kWait));

  EXPECT_LE(group.meter().total().seconds, watch.seconds() - 2 * seconds(SlowGroup::kReceive))
      << "no second is counted twice, and none of those that nobody waited";
}

TEST(Metered, CountsTheSecondsBlockedInWait) {
  run_ranks(2, [](Group& plain) {
    Metered group(plain.split(0, plain.rank()));
    at::Tensor mine = at::ones({4});
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    group.all_reduce(mine, Op::kSum).wait();
    const double blocked = group.meter()[Kind::kAllReduce].seconds;
    if (group.rank() == 0) {
      EXPECT_GT(blocked, 0.2);
    } else {
      EXPECT_LT(blocked, 0.2);
    }
    plain.barrier();
  });
}

TEST(Metered, ThreadsCountIntoOneAccount) {
  Metered world(comm::open_alone());
  constexpr int kThreads = 2, kCalls = 20000;  // a server answers each worker in a thread
  std::vector<std::unique_ptr<Metered>> parts;
  for (int k = 0; k < kThreads; ++k) parts.push_back(world.part(0, 0));
  run_threads(kThreads, [&](int k) {
    for (int call = 0; call < kCalls; ++call) parts[static_cast<size_t>(k)]->barrier();
  });
  EXPECT_EQ(world.meter()[Kind::kBarrier].calls, kThreads * kCalls);
}

TEST(Metered, OneRankSendsNothing) {
  Metered group(comm::open_alone());
  exchange(group, {Kind::kAllReduce, at::kFloat});
  exchange(group, {Kind::kBroadcast, at::kFloat});
  EXPECT_EQ(group.meter().total().bytes, 0);
  EXPECT_EQ(group.meter().total().calls, 2);
}

void raise_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  ::ioctl(fd, SIOCGIFFLAGS, &request);
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  ::ioctl(fd, SIOCSIFFLAGS, &request);
  ::close(fd);
}

/// What the loopback interface has sent since it came up.
int64_t bytes_on_loopback() {
  std::ifstream file("/proc/net/dev");
  for (std::string word; file >> word;) {
    if (word != "lo:") continue;
    int64_t number = 0;
    for (int column = 0; column < 9; ++column) file >> number;
    return number;
  }
  return -1;
}

/// Inside a network of its own: prints "kind type ranks reported counted" for each exchange.
TEST(MeteredChild, DISABLED_Main) {
  raise_loopback();
  std::ofstream out(variable("SYNCOPATE_TEST_OUT"));
  for (const int size : {2, 3, 4}) {
    run_gloo_ranks(size, [&](Group& plain) {
      Metered group(plain.split(0, plain.rank()));
      for (const Exchange& what : kExchanges) {
        plain.barrier();
        const int64_t before = bytes_on_loopback();
        const int64_t reported_before = group.meter().total().bytes;
        plain.barrier();
        for (int k = 0; k < 4; ++k) exchange(group, what);
        at::Tensor reported = at::full({1}, group.meter().total().bytes - reported_before, at::kLong);
        plain.barrier();
        const int64_t counted = bytes_on_loopback() - before;
        plain.all_reduce(reported, Op::kSum).wait();
        if (plain.rank() == 0) {
          out << name_of(what.kind) << ' ' << c10::toString(what.type) << ' ' << size << ' '
              << reported.item<int64_t>() << ' ' << counted << std::endl;
        }
      }
      plain.barrier();
    });
  }
}

/// What all TCP connections of this process have sent and the other side has taken.
int64_t bytes_on_connections() {
  int64_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
      total += static_cast<int64_t>(info.tcpi_bytes_acked);
  }
  return total;
}

/// One rank of four, a process of its own: the same line for its own bytes.
TEST(MeteredRank, DISABLED_Main) {
  const int rank = std::stoi(variable("SYNCOPATE_TEST_RANK")),
            port = std::stoi(variable("SYNCOPATE_TEST_PORT"));
  const auto line = std::make_shared<lifeline::Lifeline>(
      lifeline::LifelineOptions{{"127.0.0.1", port}, rank, 4, kPatience, kPatience, "", {}});
  line->await_all(kPatience);
  {
    Metered group(comm::open_gloo(line, kPatience));
    std::ofstream out(variable("SYNCOPATE_TEST_OUT") + std::to_string(rank));
    for (const Exchange& what : kExchanges) {
      group.barrier();
      const int64_t before = bytes_on_connections(), reported_before = group.meter().total().bytes;
      for (int k = 0; k < 4; ++k) exchange(group, what);
      group.barrier();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // for the last acknowledgements
      out << name_of(what.kind) << ' ' << c10::toString(what.type) << " 4 "
          << group.meter().total().bytes - reported_before << ' ' << bytes_on_connections() - before
          << std::endl;
    }
    group.barrier();
  }
  line->goodbye();
}

TEST(Metered, ReportsTheBytesEachRankSends) {
  const TempDir folder;
  lifeline::LifelineServerOptions where;
  where.size = 4;
  where.timeout = kPatience;
  lifeline::LifelineServer server(where);
  std::vector<std::unique_ptr<Child>> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(std::make_unique<Child>("MeteredRank",
                                            Variables{{"SYNCOPATE_TEST_RANK", std::to_string(rank)},
                                                      {"SYNCOPATE_TEST_PORT", std::to_string(server.port())},
                                                      {"SYNCOPATE_TEST_OUT", folder / "rank"}}));
  }
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ranks[static_cast<size_t>(rank)]->wait(), 0);
    std::ifstream rows(folder / ("rank" + std::to_string(rank)));
    std::string kind, type;
    int size = 0, count = 0;
    double reported = 0, counted = 0;
    while (rows >> kind >> type >> size >> reported >> counted) {
      ++count;
      // A rank that sends no data still sends a few small messages.
      EXPECT_NEAR(reported, counted, 0.05 * counted + 20000) << kind << " of " << type << " by rank " << rank;
    }
    EXPECT_EQ(count, static_cast<int>(kExchanges.size()));
  }
}

TEST(Metered, ReportedBytesMatchTheInterface) {
  if (run_command({"unshare", "-rn", "true"}).exit_code != 0) {
    GTEST_SKIP() << "needs a network namespace of its own (unshare -rn)";
  }
  const TempDir folder;
  std::vector<std::string> command = {"unshare", "-rn"};
  for (const std::string& word : own_command("MeteredChild")) command.push_back(word);
  const CommandResult result = run_command(command, {"SYNCOPATE_TEST_OUT=" + (folder / "out").string()});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  std::ifstream rows(folder / "out");
  std::string kind, type;
  int size = 0, count = 0;
  double reported = 0, counted = 0;
  while (rows >> kind >> type >> size >> reported >> counted) {
    ++count;
    EXPECT_GT(reported, 0);
    EXPECT_NEAR(reported, counted, 0.05 * counted) << kind << " of " << type << " among " << size;
  }
  EXPECT_EQ(count, 3 * static_cast<int>(kExchanges.size()));
}

}  // namespace
}  // namespace syncopate::test
