#include "syncopate/run/world.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "syncopate/base/error.h"
#include "tests/support/child.h"
#include "tests/support/support.h"

namespace syncopate::run {
namespace {

using Kind = lifeline::RendezvousPoint::Kind;

const Environment kTorchrun = {{"RANK", "3"},
                               {"WORLD_SIZE", "4"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "29500"}};
const Environment kMpirun = {{"OMPI_COMM_WORLD_RANK", "2"},
                             {"OMPI_COMM_WORLD_SIZE", "3"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                             {"PMIX_NAMESPACE", "1234.5/6"}};
const Environment kSlurm = {{"SLURM_PROCID", "5"},
                            {"SLURM_NTASKS", "6"},
                            {"SLURM_LOCALID", "1"},
                            {"SLURM_NODEID", "2"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_JOB_ID", "99"},
                            {"SLURM_STEP_NUM_NODES", "3"},
                            {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
                            {"SLURM_STEP_NODELIST", "node[07-09]"}};

Environment with(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

Environment without(Environment base, const std::string& name) {
  base.erase(name);
  return base;
}

WorldFlags by_hand(int rank, int size, const std::string& master) { return {{}, rank, size, master}; }

std::string complaint(const WorldFlags& flags, const Environment& environment = {}) {
  try {
    find_world(flags, environment);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(World, DefaultsToOneProcess) {
  const World world = find_world({}, {{"PATH", "/bin"}, {"RANK", ""}});
  EXPECT_EQ(world.size, 1);
  EXPECT_EQ(world.launcher, "none");
  EXPECT_FALSE(world.is_worker());
}

TEST(World, ReadsRankWorldSizeAndMaster) {
  const World world = find_world(by_hand(1, 3, "10.0.0.7:4000"), kTorchrun);
  EXPECT_EQ(world.launcher, "manual");
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.size, 3);
  EXPECT_EQ(world.local_size, 1);
  EXPECT_EQ(world.rendezvous.kind, Kind::kAddress);
  EXPECT_EQ(world.rendezvous.address.text(), "10.0.0.7:4000");
  EXPECT_EQ(find_world(by_hand(1, 3, "127.0.0.1:4000"), {}).local_size, 3);
  EXPECT_EQ(find_world(by_hand(0, 1, ""), {}).size, 1);
}

TEST(World, RejectsInconsistentFlags) {
  EXPECT_NE(complaint(by_hand(3, 3, "h:1")).find("--rank must be from 0 to 2 with --world-size 3, got 3"),
            std::string::npos);
  EXPECT_NE(complaint(by_hand(-1, 3, "h:1")).find("got -1"), std::string::npos);
  EXPECT_NE(complaint(by_hand(0, 0, "h:1")).find("--world-size must be 1 or more"), std::string::npos);
  EXPECT_NE(complaint(by_hand(0, 2, "")).find("--master HOST:PORT"), std::string::npos);
  EXPECT_NE(complaint(by_hand(0, 2, "node1")).find("--master should be HOST:PORT"), std::string::npos);
  EXPECT_NE(complaint(by_hand(0, 2, "node1:99999")).find("got \"node1:99999\""), std::string::npos);
  EXPECT_NE(complaint({{}, 0, {}, "h:1"}).find("--rank needs --world-size"), std::string::npos);
  EXPECT_NE(complaint({{}, {}, 2, "h:1"}).find("--world-size needs --rank"), std::string::npos);
  EXPECT_NE(complaint({{}, {}, {}, "h:1"}).find("--master needs --rank"), std::string::npos);
  EXPECT_NE(complaint({4, 0, 2, "h:1"}).find("--workers 4 starts the workers itself"), std::string::npos);
  EXPECT_EQ(complaint({0, {}, {}, ""}), "--workers must be 1 or more, got 0");
}

TEST(World, OwnLauncherTakesPrecedence) {
  const Environment own = {{"SYNCOPATE_RANK", "1"},
                           {"SYNCOPATE_WORLD_SIZE", "2"},
                           {"SYNCOPATE_MASTER", "127.0.0.1:4001"},
                           {"SYNCOPATE_TOKEN", "k"}};
  const World world = find_world({.workers = 2, .token = "mine"}, with(own, kTorchrun));
  EXPECT_EQ(world.launcher, "syncopate");
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.rendezvous.kind, Kind::kServed);
  EXPECT_EQ(world.rendezvous.address.port, 4001);
  EXPECT_EQ(world.rendezvous.key, "k");
}

TEST(World, LaunchersProcessesAreTheWorkers) {
  const std::map<std::string, Environment> launchers{
      {"torchrun", kTorchrun}, {"mpirun", kMpirun}, {"slurm", kSlurm}};
  for (const auto& [name, variables] : launchers) {
    const int size = find_world({}, variables).size;
    ASSERT_GT(size, 1) << name;
    const std::string refusal = complaint({.workers = size + 1}, variables);
    EXPECT_NE(refusal.find(std::string(name) + " has started " + std::to_string(size) + " processes"),
              std::string::npos)
        << refusal;
    EXPECT_NE(refusal.find("leave it out"), std::string::npos) << refusal;
    EXPECT_TRUE(find_world({.workers = size}, variables).is_worker()) << "what the launcher says too";
    EXPECT_TRUE(find_world({.workers = size - 1, .servers = 1}, variables).is_worker());
  }
  // One process is nobody's crew: an interactive step, or a batch script outside of one.
  EXPECT_FALSE(
      find_world({.workers = 4}, with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}))
          .is_worker());
  EXPECT_FALSE(find_world({.workers = 4}, without(kSlurm, "SLURM_STEP_ID")).is_worker());
}

TEST(World, TokenIsTheFlagsOrTheEnvironments) {
  const Environment secret{{"SYNCOPATE_TOKEN", "of the environment"}};
  const WorldFlags flags = by_hand(1, 2, "10.0.0.7:4000");
  EXPECT_EQ(find_world(flags, secret).rendezvous.key, "of the environment");
  WorldFlags told = flags;
  told.token = std::string("of a file");
  EXPECT_EQ(find_world(told, secret).rendezvous.key, "of a file");
  EXPECT_EQ(find_world(flags, {}).rendezvous.key, "");
}

TEST(World, BeyondLoopbackNeedsATokenOrAWord) {
  const auto refusal = [](const World& world) -> std::string {
    try {
      join(world, "auto", std::chrono::milliseconds(50));
      return "joined";
    } catch (const ConfigError& error) {
      return error.what();
    } catch (const CommError&) {
      return "tried";
    }
  };
  World world = find_world(by_hand(1, 2, "192.0.2.1:4000"), {});
  EXPECT_NE(refusal(world).find("SYNCOPATE_TOKEN"), std::string::npos) << refusal(world);
  world.insecure = true;
  EXPECT_EQ(refusal(world), "tried");
  world.insecure = false;
  world.rendezvous.key = std::string("secret");
  EXPECT_EQ(refusal(world), "tried");
  EXPECT_EQ(refusal(find_world(by_hand(1, 2, "127.0.0.1:1"), {})), "tried") << "only this machine reaches it";
}

TEST(World, LaunchersOnOneMachineStayOnLoopback) {
  EXPECT_EQ(find_world({.master = "node1:77"}, kMpirun).rendezvous.address.text(), "127.0.0.1:77");
  EXPECT_EQ(find_world({}, with(kMpirun, {{"MASTER_ADDR", "node2"}})).rendezvous.address.text(),
            "127.0.0.1:29500");
}

TEST(World, Torchrun) {
  const World world = find_world({}, kTorchrun);
  EXPECT_EQ(world.launcher, "torchrun");
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.rendezvous.kind, Kind::kAddress);
  EXPECT_EQ(world.rendezvous.address.text(), "node1:29500");
  const World agent = find_world({}, with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  EXPECT_EQ(agent.rendezvous.kind, Kind::kAgent);
  EXPECT_EQ(find_world({{}, {}, {}, "other:1"}, kTorchrun).rendezvous.address.text(), "other:1");
}

TEST(World, TorchrunOnOneMachineStaysOnLoopback) {
  const Environment together = with(kTorchrun, {{"LOCAL_WORLD_SIZE", "4"}, {"TORCHELASTIC_RUN_ID", "a b"}});
  EXPECT_EQ(find_world({}, together).rendezvous.address.text(), "127.0.0.1:29500");
  const World agent = find_world({}, with(together, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  EXPECT_EQ(agent.rendezvous.kind, Kind::kFile);
  EXPECT_EQ(agent.rendezvous.file.filename(), "torchrun-a_b-29500-0.rendezvous");
}

TEST(World, RejectsAnIncompleteTorchrunEnvironment) {
  EXPECT_NE(complaint({}, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}).find("MASTER_ADDR and MASTER_PORT"),
            std::string::npos);
  EXPECT_NE(complaint({}, with(kTorchrun, {{"RANK", "4"}})).find("rank 4 does not fit 4 workers"),
            std::string::npos);
  EXPECT_NE(
      complaint({}, with(kTorchrun, {{"RANK", "x"}})).find("RANK should be a small number but is \"x\""),
      std::string::npos);
}

TEST(World, MpirunOnOneMachineUsesAFileRendezvous) {
  const World world = find_world({}, kMpirun);
  EXPECT_EQ(world.launcher, "mpirun");
  EXPECT_EQ(world.rank, 2);
  EXPECT_EQ(world.local_rank, 2);
  EXPECT_EQ(world.rendezvous.kind, Kind::kFile);
  EXPECT_EQ(world.rendezvous.file.filename(), "mpirun-1234.5_6.rendezvous");
}

TEST(World, MpirunOnSeveralMachinesNeedsAMaster) {
  const Environment apart = with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  EXPECT_NE(complaint({}, apart).find("add --master HOST:PORT"), std::string::npos);
  EXPECT_EQ(find_world({{}, {}, {}, "node1:77"}, apart).rendezvous.address.text(), "node1:77");
  EXPECT_EQ(find_world({}, with(apart, {{"MASTER_ADDR", "node2"}})).rendezvous.address.text(), "node2:29500");
}

TEST(World, SlurmVariablesCountOnlyInsideAStep) {
  const World world = find_world({}, kSlurm);
  EXPECT_EQ(world.launcher, "slurm");
  EXPECT_EQ(world.rank, 5);
  EXPECT_EQ(world.size, 6);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.rendezvous.kind, Kind::kAddress);
  EXPECT_EQ(world.rendezvous.address.host, "node07");
  EXPECT_GE(world.rendezvous.address.port, 1024);
  EXPECT_FALSE(find_world({}, without(kSlurm, "SLURM_STEP_ID")).is_worker())
      << "a batch script's own environment";
}

TEST(World, SlurmOnOneNodeUsesAFileRendezvous) {
  const World world =
      find_world({}, with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NODELIST", "node07"}}));
  EXPECT_EQ(world.rendezvous.kind, Kind::kFile);
  EXPECT_EQ(world.local_size, 6);
  EXPECT_EQ(world.rendezvous.file.filename(), "slurm-99-0.rendezvous");
}

TEST(World, ParsesSlurmNodeLists) {
  EXPECT_EQ(first_host("node7"), "node7");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("node[07-09,12],other"), "node07");
  EXPECT_EQ(first_host("node[3,5]"), "node3");
  EXPECT_EQ(first_host("rack[1-2]-eth,x"), "rack1-eth");
  EXPECT_THROW(first_host("node[3"), ConfigError);
}

/// What a process does that a real launcher starts: joins and adds up the ranks.
TEST(WorldChild, DISABLED_Main) {
  const World world = find_world({}, environment_of_process());
  comm::Membership member = join(world, "auto", std::chrono::seconds(60));
  at::Tensor sum = at::full({1}, world.rank + 1, at::kLong);
  member.group->all_reduce(sum, comm::Op::kSum).wait();
  std::ofstream(test::variable("SYNCOPATE_TEST_OUT") + std::to_string(world.rank))
      << world.launcher << ' ' << world.size << ' ' << sum.item<int64_t>();
  member.leave();
}

class RealLauncher : public testing::Test {
 protected:
  void start(std::vector<std::string> command, const std::string& name, int workers) {
    const test::TempDir folder;
    for (const std::string& word : test::own_command("WorldChild")) command.push_back(word);
    const auto result = test::run_command(command, {"SYNCOPATE_TEST_OUT=" + (folder / "rank").string()}, 200);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    for (int rank = 0; rank < workers; ++rank) {
      EXPECT_EQ(test::read_text(folder / ("rank" + std::to_string(rank))),
                fmt::format("{} {} {}", name, workers, workers * (workers + 1) / 2));
    }
  }
  static bool absent(const std::string& program) {
    return test::run_command({"which", program}).exit_code != 0;
  }
};

TEST_F(RealLauncher, Mpirun) {
  if (absent("mpirun")) GTEST_SKIP() << "needs mpirun (openmpi-bin)";
  start({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"}, "mpirun", 3);
}

TEST_F(RealLauncher, Torchrun) {
  if (absent("torchrun")) GTEST_SKIP() << "needs torchrun (python3-torch)";
  const test::TempDir logs;
  start({"torchrun", "--nproc_per_node", "2", "--master_port", "29613", "-r", "1", "-t", "1", "--log_dir",
         logs.path().string(), "--no_python"},
        "torchrun", 2);
}

}  // namespace
}  // namespace syncopate::run
