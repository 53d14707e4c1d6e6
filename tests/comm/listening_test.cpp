#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "syncopate/base/error.h"
#include "syncopate/comm/open.h"
#include "tests/contract/ranks.h"
#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate::test {
namespace {

std::set<std::string> own_sockets() {
  std::set<std::string> inodes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry, gone);
    if (target.rfind("socket:[", 0) == 0) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

/// The addresses (hexadecimal, as the kernel writes them) at which this process listens for TCP.
std::multiset<std::string> listening_addresses() {
  const std::set<std::string> mine = own_sockets();
  std::multiset<std::string> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string row;
    std::getline(file, row);
    while (std::getline(file, row)) {
      std::istringstream fields(row);
      std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
          inode;
      if (state == "0A" && mine.contains(inode)) found.insert(local.substr(0, local.find(':')));
    }
  }
  return found;
}

TEST(Listening, OneMachineListensOnLoopbackOnly) {
  const std::string loopback = "0100007F";
  run_gloo_ranks(3, [&](comm::Group& group) {
    group.barrier();
    if (group.rank() == 0) {
      const auto addresses = listening_addresses();
      EXPECT_GE(addresses.count(loopback), 1u) << "the server listens";
      EXPECT_EQ(addresses.count(loopback), addresses.size());
    }
    group.barrier();
  });
  // The check would see it otherwise.
  const lifeline::Socket wide = lifeline::listen_at({"0.0.0.0", 0});
  EXPECT_EQ(listening_addresses().count("00000000"), 1u);
}

int broken_pipe_errno() {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  ::close(ends[0]);
  const int error = ::write(ends[1], "x", 1) < 0 ? errno : 0;
  ::close(ends[1]);
  return error;
}

volatile sig_atomic_t broken_pipes = 0;

TEST(Gloo, AClosedSocketIsAnErrorAndNotTheEndOfTheProgram) {
  const auto before = ::signal(SIGPIPE, SIG_DFL);
  run_gloo_ranks(2, [](comm::Group& group) { group.barrier(); });
  EXPECT_EQ(broken_pipe_errno(), EPIPE) << "by default this would have been the end";
  // A program that has chosen keeps its choice.
  ::signal(SIGPIPE, [](int) { broken_pipes = broken_pipes + 1; });
  run_gloo_ranks(2, [](comm::Group& group) { group.barrier(); });
  EXPECT_EQ(broken_pipe_errno(), EPIPE);
  EXPECT_EQ(broken_pipes, 1);
  ::signal(SIGPIPE, before);
}

TEST(Rendezvous, RankZeroServesAtTheGivenAddress) {
  const int port = lifeline::LifelineServer(lifeline::LifelineServerOptions{}).port();
  run_threads(2, [&](int rank) {
    comm::CommOptions options;
    options.rank = rank;
    options.size = 2;
    options.timeout = kPatience;
    options.rendezvous.kind = lifeline::RendezvousPoint::Kind::kAddress;
    options.rendezvous.address = {"127.0.0.1", port};
    comm::Membership member = comm::open(options);
    EXPECT_EQ(member.server != nullptr, rank == 0);
    at::Tensor mine = at::ones({3});
    member.group->all_reduce(mine, comm::Op::kSum).wait();
    EXPECT_EQ(mine.sum().item<double>(), 6);
    member.leave();
  });
}

TEST(Rendezvous, IgnoresAFileLeftByAFormerRun) {
  const TempDir folder;
  std::filesystem::create_directory(folder / "private");
  std::filesystem::permissions(folder / "private", std::filesystem::perms::owner_all);
  const std::filesystem::path file = folder / "private" / "job.rendezvous";
  const lifeline::LifelineServer other_run(lifeline::LifelineServerOptions{});
  write_text(file, "127.0.0.1:" + std::to_string(other_run.port()) + " 0123\n");
  run_threads(3, [&](int rank) {
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    comm::CommOptions options;
    options.rank = rank;
    options.size = 3;
    options.timeout = kPatience;
    options.rendezvous.kind = lifeline::RendezvousPoint::Kind::kFile;
    options.rendezvous.file = file;
    comm::Membership member = comm::open(options);
    member.group->barrier();
    member.leave();
  });
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Rendezvous, RejectsAFolderThatOthersCanOpen) {
  const TempDir folder;
  std::filesystem::create_directory(folder / "open");
  std::filesystem::permissions(folder / "open", std::filesystem::perms::all);
  lifeline::RendezvousPoint point;
  point.kind = lifeline::RendezvousPoint::Kind::kFile;
  point.file = folder / "open" / "job.rendezvous";
  EXPECT_THROW(lifeline::rendezvous(point, {.rank = 0, .size = 2, .timeout = kPatience}), CommError);
}

}  // namespace
}  // namespace syncopate::test
