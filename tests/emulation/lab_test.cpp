// Labs as they are: real namespaces, real TCP, and programs inside that are this test program again.
#include "syncopate/emulation/lab.h"

#include <arpa/inet.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "syncopate/base/descriptor.h"
#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/emulation/control.h"
#include "syncopate/emulation/exec.h"
#include "syncopate/emulation/switch.h"
#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate::emulation {
namespace {

using Clock = std::chrono::steady_clock;
using test::variable;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Hosts a, b, c, d; the link of each pair differs.
network::Topology four_hosts() {
  const network::Link slow{.latency_ms = 5, .gbit = 0.01}, middle{.latency_ms = 25, .gbit = 0.1},
      fast{.latency_ms = 0.5, .gbit = 1}, far{.latency_ms = 125, .gbit = 0.1},
      open{.latency_ms = 0.1, .gbit = 4};
  const network::Link& own = network::kMemory;
  return {"four",
          {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}},
          {own, slow, middle, fast, slow, own, far, open, middle, far, own, fast, fast, open, fast, own}};
}

/// Runs the role (see Inside below) in a lab of that network.
int in_lab(const network::Topology& topology, const std::string& role, const test::Variables& more = {}) {
  LabOptions options{.topology = topology};
  options.argv = test::own_command("Inside");
  options.environment = {{"LAB_ROLE", role}};
  options.environment.insert(more.begin(), more.end());
  return run_in_lab(options);
}

/// The same with a program that starts sooner.
int shell_in_lab(const std::string& script) {
  LabOptions options{.topology = four_hosts(), .program = "/bin/sh"};
  options.argv = {"sh", "-c", script};
  return run_in_lab(options);
}

/// A pair of connected sockets between two hosts; both ends are this process's.
struct Connection {
  Descriptor from, to;
  Connection(const Inside& lab, int a, int b) {
    std::promise<int> port;
    std::thread receiver([&] {
      lab.enter(b);
      const Descriptor listener(::socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      socklen_t size = sizeof address;
      ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size);
      ::listen(listener.get(), 1);
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
      port.set_value(ntohs(address.sin_port));
      to = Descriptor(::accept(listener.get(), nullptr, nullptr));
    });
    std::thread sender([&] {
      lab.enter(a);
      from = Descriptor(::socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port.get_future().get()));
      ::inet_pton(AF_INET, lab.address(b).c_str(), &address.sin_addr);
      ::connect(from.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    });
    sender.join();
    receiver.join();
    const int yes = 1;
    for (const Descriptor* end : {&from, &to})
      ::setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
};

/// Seconds until a byte has come back.
double round_trip(const Connection& connection) {
  const Clock::time_point start = Clock::now();
  char byte = 'x';
  ::send(connection.from.get(), &byte, 1, 0);
  ::recv(connection.to.get(), &byte, 1, MSG_WAITALL);
  ::send(connection.to.get(), &byte, 1, 0);
  ::recv(connection.from.get(), &byte, 1, MSG_WAITALL);
  return since(start);
}

/// The least of some: what a busy machine adds to the others is not the network's. No more than are needed to
/// come below `enough`.
double best_round_trip(const Connection& connection, double enough) {
  double best = round_trip(connection);
  for (int k = 0; k < 30 && best > enough; ++k) best = std::min(best, round_trip(connection));
  return best;
}

/// Gbit/s of payload once it flows, over `seconds`.
double goodput(const Inside& lab, int a, int b, double warm_up, double seconds) {
  const Connection connection(lab, a, b);
  std::atomic<bool> stop{false};
  std::thread sender([&] {
    const std::vector<char> bytes(1 << 18);
    while (!stop && ::send(connection.from.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  std::vector<char> bytes(1 << 20);
  const Clock::time_point start = Clock::now();
  double counted = 0, first = 0, last = 0;
  while (last < warm_up + seconds) {
    const ssize_t size = ::recv(connection.to.get(), bytes.data(), bytes.size(), 0);
    last = since(start);
    if (size <= 0) break;
    if (last < warm_up) {
      first = last;
    } else {
      counted += static_cast<double>(size);
    }
  }
  stop = true;
  ::shutdown(connection.to.get(), SHUT_RDWR);
  ::shutdown(connection.from.get(), SHUT_RDWR);
  sender.join();
  return counted * 8e-9 / (last - first);
}

/// What runs inside: one role a time, chosen by LAB_ROLE.
TEST(Inside, DISABLED_Main) {
  const std::string role = variable("LAB_ROLE");
  const std::optional<Inside> lab = inside();
  ASSERT_TRUE(lab);
  if (role == "round trips") {
    EXPECT_EQ(lab->topology(), four_hosts());
    hostent* const entry = ::gethostbyname("c");
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(::inet_ntoa(*reinterpret_cast<in_addr*>(entry->h_addr_list[0])), lab->address(2));
    EXPECT_NE(lab->address(2), lab->address(1));
    const auto check = [&](int a, int b, double asked_ms) {
      const double bound_ms = std::max(0.5, 0.1 * asked_ms);
      const Connection connection(*lab, a, b);
      const double ms = 1e3 * best_round_trip(connection, 1e-3 * (asked_ms + bound_ms / 2));
      EXPECT_NEAR(ms, asked_ms, bound_ms);
    };
    check(0, 3, 1);
    check(0, 1, 10);
    check(2, 0, 50);
    check(1, 2, 250);
  } else if (role == "rates") {
    const auto check = [before = *ask_report()](double asked, double found) {
      if (!between(before, *ask_report()).trustworthy) return;  // the machine is too busy to tell
      EXPECT_NEAR(found / (asked * network::kPayloadShare), 1, 0.05) << asked << " Gbit/s asked, " << found;
    };
    auto slow = std::async(std::launch::async, [&] { return goodput(*lab, 0, 1, 0.6, 1.5); });
    check(0.1, goodput(*lab, 0, 2, 0.8, 1));
    check(0.01, slow.get());
    check(1, goodput(*lab, 2, 3, 0.2, 0.8));
    EXPECT_GT(goodput(*lab, 1, 3, 0.1, 0.3), 1.3) << "the rates above are the links', not the machine's";
    const auto report = ask_report();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->how, "switch");
    EXPECT_FALSE(report->congestion_control.empty());
    for (const LabReport::LinkUse& link : report->links) {
      if (link.from == 0 && link.to == 1) {
        EXPECT_GT(link.bytes, 2e6);
      } else if (link.from == 1 && link.to == 2) {
        EXPECT_EQ(link.bytes, 0);
      }
    }
  } else if (role == "changes") {
    const Connection connection(*lab, 0, 3);
    EXPECT_LT(best_round_trip(connection, 0.01), 0.01);
    EXPECT_NE(change_link(lab->name(), "a-d", {.latency_ms = 20}).find("20 ms"), std::string::npos);
    EXPECT_GT(round_trip(connection), 0.04);
    cut_link(lab->name(), "d-a");
    auto waits = std::async(std::launch::async, [&] { return round_trip(connection); });
    EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);
    change_link(lab->name(), "0-3", {.latency_ms = 0.5});
    EXPECT_GT(waits.get(), 0.5);
    EXPECT_LT(best_round_trip(connection, 0.01), 0.01);
    EXPECT_EQ(ask_report()->changed, 6) << "both directions, three times";
    EXPECT_THROW(change_link(lab->name(), "a-d", {.gbit = 100}), ConfigError);
    EXPECT_THROW(change_link(lab->name(), "a-d", {.jitter_ms = 2}), ConfigError) << "more than its latency";
    EXPECT_EQ(ask_report()->changed, 6);
    const double before = goodput(*lab, 0, 3, 0.05, 0.2);
    EXPECT_NE(change_link(lab->name(), "a-d", {.gbit = 0.0625}).find("0.0625 Gbit/s"), std::string::npos);
    const double after = goodput(*lab, 0, 3, 0.1, 0.3);
    EXPECT_LT(after, 0.07);
    EXPECT_GT(before, 4 * after);
    const auto largest_buffer = [&] {  // of TCP on the host
      int64_t first = 0, usual = 0, most = 0;
      std::thread([&] {
        lab->enter(0);
        std::ifstream("/proc/sys/net/ipv4/tcp_rmem") >> first >> usual >> most;
      }).join();
      return most;
    };
    change_link(lab->name(), "a-d", {.gbit = 1, .latency_ms = 250});
    EXPECT_GT(largest_buffer(), 6 * 62'500'000);
    change_link(lab->name(), "a-d", {.latency_ms = 20});
    EXPECT_GT(largest_buffer(), 6 * 62'500'000) << "what is on the way still has room";
    EXPECT_THROW(cut_link(lab->name(), "a-x"), ConfigError);
    EXPECT_THROW(cut_link("nowhere", "a-b"), ConfigError);
    ASSERT_EQ(list_labs().size(), 1u);
    EXPECT_EQ(list_labs()[0].hosts, (std::vector<std::string>{"a", "b", "c", "d"}));
  } else if (role == "exec") {
    const std::string say =
        "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR $GLOO_SOCKET_IFNAME "
        "$(hostname) > " +
        variable("LAB_MARK") + "$RANK";
    EXPECT_EQ(run_on_every_device(*lab, {"sh", "-c", say}), 0);
    const Clock::time_point start = Clock::now();
    EXPECT_EQ(run_on_every_device(*lab, {"sh", "-c", "[ $RANK = 1 ] && exit 5; exec sleep 60"}), 5);
    EXPECT_LT(since(start), 5) << "one that fails ends the others";
    EXPECT_THROW(run_on_every_device(*lab, {"no-such-program"}), ConfigError);
  } else {
    FAIL() << role;
  }
}

/// A process like this one that does no more than that; it ends with its exit code.
template <typename Action>
pid_t start_outer(Action action) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  int code = 1;
  try {
    code = action();
  } catch (const Error& error) {
    code = static_cast<int>(error.code());
  }
  ::_exit(code);
}

int end_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Whether this machine lets us; every test here needs it.
class Lab : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_RUNTIME_DIR", runtime_.path().c_str(), 1);
    static const bool allowed = test::run_command({"unshare", "--user", "--map-root-user", "--net", "--mount",
                                                   "--pid", "--fork", "--mount-proc", "true"})
                                    .exit_code == 0;
    if (!allowed) GTEST_SKIP() << "needs network namespaces";
  }
  bool no_socket_left() const { return std::filesystem::is_empty(runtime_.path() / "syncopate" / "labs"); }
  test::TempDir runtime_;
};

pid_t child_of(pid_t parent) {
  pid_t child = 0;
  std::ifstream(fmt::format("/proc/{0}/task/{0}/children", parent)) >> child;
  return child;
}

ino_t namespace_of(const std::filesystem::path& process) {
  struct stat status {};
  return ::stat((process / "ns/net").c_str(), &status) == 0 ? status.st_ino : 0;
}

/// Whether any process is still in one of these network namespaces.
bool in_use(const std::set<ino_t>& namespaces) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (namespaces.contains(namespace_of(entry.path()))) return true;
  }
  return false;
}

TEST_F(Lab, ReturnsTheExitCodeAndLeavesNothing) {
  const test::TempDir folder;
  const std::string script = "sleep 100 & stat -Lc %i /proc/self/ns/net > " + (folder / "inode").string();
  EXPECT_EQ(shell_in_lab(script + "; exit 7"), 7);
  const ino_t inside = std::stoull(test::read_text(folder / "inode"));
  EXPECT_FALSE(in_use({inside}));
  EXPECT_TRUE(in_use({namespace_of("/proc/self")}));
  EXPECT_TRUE(no_socket_left());
}

TEST_F(Lab, HasTheHostsAndLatenciesAskedFor) { EXPECT_EQ(in_lab(four_hosts(), "round trips"), 0); }
TEST_F(Lab, HasTheRatesAskedFor) { EXPECT_EQ(in_lab(four_hosts(), "rates"), 0); }
TEST_F(Lab, LinksChangeAndAreCutWhileItRuns) { EXPECT_EQ(in_lab(four_hosts(), "changes"), 0); }

TEST_F(Lab, RunsACommandOnEveryDevice) {
  const network::Link link{.latency_ms = 1, .gbit = 1};
  const network::Topology topology("two", {{.name = "a"}, {.name = "b", .devices = 2}},
                                   {network::kMemory, link, link, network::kMemory});
  const test::TempDir folder;
  EXPECT_EQ(in_lab(topology, "exec", {{"LAB_MARK", folder / "rank"}}), 0);
  EXPECT_EQ(test::read_text(folder / "rank0"), "0/3 0/1 0 10.86.0.1 eth0 a\n");
  EXPECT_EQ(test::read_text(folder / "rank2"), "2/3 1/2 1 10.86.0.1 eth0 b\n");
}

TEST_F(Lab, NothingIsLeftOfItWhoeverIsKilled) {
  for (const int depth : {0, 1, 2, 3}) {  // the outer process, the keeper, the lab, the program
    const test::TempDir folder;
    const std::filesystem::path mark = folder / "mark";
    const pid_t outer =
        start_outer([&] { return shell_in_lab("touch " + mark.string() + "; sleep 100 & sleep 100"); });
    ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(mark); }));
    std::vector<pid_t> line{outer};
    while (line.size() < 4) line.push_back(child_of(line.back()));
    ASSERT_GT(line.back(), 0);
    std::set<ino_t> inside;  // the lab's own and a host's
    for (const size_t k : {2, 3}) inside.insert(namespace_of(fmt::format("/proc/{}", line[k])));
    ASSERT_EQ(inside.size(), 2u);
    ASSERT_FALSE(inside.contains(namespace_of("/proc/self")));
    ::kill(line[static_cast<size_t>(depth)], SIGKILL);
    const int code = end_of(outer);
    EXPECT_EQ(code, depth == 3 || depth == 0 ? 128 + SIGKILL : static_cast<int>(ExitCode::kComm));
    for (const pid_t pid : line)
      EXPECT_TRUE(test::eventually([&] { return ::kill(pid, 0) != 0; }, 5)) << depth << " " << pid;
    EXPECT_TRUE(test::eventually([&] { return !in_use(inside); }, 5)) << depth;
    EXPECT_TRUE(test::eventually([&] { return no_socket_left(); }, 5)) << depth;
  }
}

TEST_F(Lab, ASignalComesToTheProgramOnce) {
  for (const bool to_group : {false, true}) {  // `kill`, and Ctrl-C of a terminal
    const test::TempDir folder;
    const std::filesystem::path mark = folder / "mark";
    const pid_t outer = start_outer([&] {
      return shell_in_lab("trap 'n=x$n' INT; touch " + mark.string() +
                          "; while [ -z $n ]; do sleep 0.05; done; sleep 0.3; [ $n = x ] && exit 42");
    });
    ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(mark); }));
    ::kill(to_group ? -outer : outer, SIGINT);
    EXPECT_EQ(end_of(outer), 42) << to_group;
  }
}

TEST_F(Lab, NeedsNoRoot) {
  if (::geteuid() != 0) return;  // then all tests here show it
  const test::TempDir runtime;
  const pid_t outer = start_outer([&] {
    ::setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
    if (::chown(runtime.path().c_str(), 65534, 65534) != 0) return 98;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(65534, 65534, 65534) != 0 ||
        ::setresuid(65534, 65534, 65534) != 0 || ::unshare(CLONE_NEWNET) == 0)
      return 99;
    ::prctl(PR_SET_DUMPABLE, 1);  // as after the start of a program: else /proc/self is root's
    return in_lab(four_hosts(), "round trips");
  });
  EXPECT_EQ(end_of(outer), 0);
}

TEST_F(Lab, LeavesTheSocketOfAnotherLabAlone) {
  const std::filesystem::path taken = labs_folder() / fmt::format("four-{}.sock", ::getpid());
  const Descriptor other(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  taken.string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(other.get(), 4), 0);
  EXPECT_EQ(shell_in_lab("exit 7"), 7);
  EXPECT_TRUE(somebody_listens(taken));
  ::unlink(taken.c_str());
  EXPECT_FALSE(somebody_listens(taken));
  EXPECT_TRUE(no_socket_left());
}

TEST_F(Lab, IsNotTakenForDeadWhileItStarts) {
  const network::Topology one("one", {{.name = "a"}}, {network::kMemory});
  const std::vector<HostSide> hosts;
  Switch network_switch(one, hosts);
  std::atomic<bool> stop{false};
  std::thread looks([&] {
    while (!stop) list_labs();
  });
  int lost = 0;
  for (int k = 0; k < 200; ++k) {
    const std::filesystem::path socket = labs_folder() / fmt::format("one-{}.sock", k);
    ControlServer server(socket, {.name = "one",
                                  .how = "switch",
                                  .congestion_control = "cubic",
                                  .topology = one,
                                  .hosts = hosts,
                                  .network_switch = network_switch});
    server.start();
    lost += std::filesystem::exists(socket) ? 0 : 1;
  }
  stop = true;
  looks.join();
  EXPECT_EQ(lost, 0);
}

TEST_F(Lab, ReportsThatCannotBeWrittenAreFoundOutBefore) {
  const test::TempDir folder;
  LabOptions options{.topology = four_hosts(), .program = "/bin/sh"};
  options.argv = {
      "sh", "-c",
      "rm -r " + (folder / "gone").string() + "; touch " + (folder / "ran").string() + "; exit 7"};
  options.report = folder / "nowhere/report.json";
  EXPECT_THROW(run_in_lab(options), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(folder / "ran"));
  std::filesystem::create_directory(folder / "gone");
  options.report = folder / "gone/report.json";
  EXPECT_EQ(run_in_lab(options), 7) << "the program's code, though the report is lost";
  EXPECT_TRUE(std::filesystem::exists(folder / "ran"));
}

TEST_F(Lab, SaysWhatIsMissingWhereItMayNot) {
  const test::TempDir folder;
  const pid_t outer = start_outer([&] {
    const std::string uid = fmt::format("0 {} 1", ::geteuid());
    if (::unshare(CLONE_NEWUSER) != 0) return 99;
    test::write_text("/proc/self/uid_map", uid);
    test::write_text("/proc/sys/user/max_net_namespaces", "0");
    try {
      return shell_in_lab("exit 7");
    } catch (const ConfigError& error) {
      test::write_text(folder / "said", error.what());
      throw;
    }
  });
  EXPECT_EQ(end_of(outer), static_cast<int>(ExitCode::kConfig));
  const std::string said = test::read_text(folder / "said");
  EXPECT_NE(said.find("user.max_net_namespaces is 0"), std::string::npos) << said;
  EXPECT_TRUE(no_socket_left());
}

}  // namespace
}  // namespace syncopate::emulation
