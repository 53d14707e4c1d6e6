// Real mpirun, real torchrun, Slurm's variables; where a run listens; what it says it sent.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

class Launchers : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }
  Words command(const std::string& name, const Words& more = {}) {
    Words all{"--strategy", "ddp", "--steps", "12"};
    all.insert(all.end(), more.begin(), more.end());
    return train_command(data_, folder_ / name, all);
  }
  /// The losses that `--workers 2` gives, which does not depend on the folder.
  std::string reference() {
    static std::string losses;
    if (!losses.empty()) return losses;
    const CommandResult result = run_command(command("reference", {"--workers", "2"}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    losses = read_text(folder_ / "reference/loss_1.txt");
    EXPECT_EQ(std::count(losses.begin(), losses.end(), '\n'), 12);
    return losses;
  }
  Words after(Words prefix, const Words& words) {
    prefix.insert(prefix.end(), words.begin(), words.end());
    return prefix;
  }

  TempDir folder_;
  std::string data_;
};

TEST_F(Launchers, MpirunStartsWorkers) {
  const CommandResult result =
      run_command(after({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"}, command("mpi")));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_text(folder_ / "mpi/loss_1.txt"), reference());
  EXPECT_NE(result.err.find("by mpirun"), std::string::npos) << result.err;
}

TEST_F(Launchers, TorchrunStartsWorkers) {
  const CommandResult result =
      run_command(after({SYNCOPATE_TORCHRUN, "--nproc_per_node", "2", "--master_port",
                         std::to_string(29600 + ::getpid() % 90), "-r", "1", "-t", "1", "--no_python"},
                        command("torchrun")),
                  {"PYTHONWARNINGS=ignore"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(read_text(folder_ / "torchrun/loss_1.txt"), reference());
}

TEST_F(Launchers, SlurmVariablesCountInsideAStep) {
  const auto variables = [&](int rank, bool step) {
    std::vector<std::string> all{"SLURM_PROCID=" + std::to_string(rank),
                                 "SLURM_NTASKS=2",
                                 "SLURM_JOB_ID=77",
                                 "SLURM_LOCALID=" + std::to_string(rank),
                                 "SLURM_NNODES=1",
                                 "SLURM_STEP_NUM_NODES=1",
                                 "SLURM_STEP_NUM_TASKS=2",
                                 "SLURM_STEP_NODELIST=localhost"};
    if (step) all.push_back("SLURM_STEP_ID=" + std::to_string(::getpid()));
    return all;
  };
  Process first(command("slurm"), variables(0, true)), second(command("slurm"), variables(1, true));
  const CommandResult one = first.wait(120), two = second.wait(120);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(read_text(folder_ / "slurm/loss_1.txt"), reference());
  // In a job's script, outside a step, the same variables mean nothing: one worker.
  const CommandResult script = run_command(command("script"), variables(1, false));
  EXPECT_EQ(script.exit_code, 0) << script.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "script/loss_1.txt"));
}

TEST_F(Launchers, WorkersFlagUnderALauncherIsRefused) {
  const CommandResult result = run_command(after(
      {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"}, command("run", {"--workers", "2"})));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("mpirun has started 3 processes, which are the workers"), std::string::npos)
      << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(Launchers, OneMachineListensOnLoopbackOnly) {
  Process run(
      train_command(data_, folder_ / "run", {"--strategy", "ddp", "--workers", "2", "--steps", "100000"}));
  ASSERT_TRUE(run.until([&] { return !read_text(folder_ / "run/steps.jsonl").empty(); })) << run.err();
  const CommandResult sockets = run_command({"ss", "-ltnpH"});
  ASSERT_EQ(sockets.exit_code, 0) << sockets.err;
  size_t ours = 0;
  std::vector<int> pids = processes_with(folder_.path().string());
  std::istringstream lines(sockets.out);
  for (std::string line; std::getline(lines, line);) {
    bool mine = false;
    for (const int pid : pids)
      mine = mine || line.find("pid=" + std::to_string(pid) + ",") != std::string::npos;
    if (!mine) continue;
    ++ours;
    EXPECT_TRUE(line.find(" 127.0.0.1:") != std::string::npos || line.find(" [::1]:") != std::string::npos)
        << line;
  }
  EXPECT_GE(ours, 1u) << "the run has listening sockets: " << sockets.out;
}

/// Runs in a network namespace of its own, where nothing else talks, and returns what its loopback carried.
double loopback_bytes(const Words& command) {
  std::string script = "ip link set lo up && \"$@\" >&2 && awk '/lo:/ {print $10}' /proc/net/dev";
  Words words{"unshare", "--user", "--map-root-user", "--net", "sh", "-c", script, "sh"};
  words.insert(words.end(), command.begin(), command.end());
  const CommandResult result = run_command(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out.empty() ? 0 : std::stod(result.out);
}

TEST_F(Launchers, ReportedBytesMatchTheInterface) {
  if (!namespaces_allowed()) GTEST_SKIP() << "this system allows no namespaces of one's own";
  /// What twenty steps put on the interface, as a share of what they report.
  const auto share = [&](const std::string& backend, const std::string& strategy, int workers) {
    const auto run = [&](int steps) {
      const std::string name = fmt::format("{}-{}{}-{}", backend, strategy, workers, steps);
      const double bytes = loopback_bytes(
          train_command(data_, folder_ / name,
                        {"--strategy", strategy, "--workers", std::to_string(workers), "--backend", backend,
                         "--steps", std::to_string(steps), "--eval-every", "1000"}));
      return std::pair(bytes, nlohmann::json::parse(read_text(folder_ / (name + "/result.json"))));
    };
    // What start and end cost is in both runs: the difference is the steps' own.
    const auto [few_bytes, few] = run(5);
    const auto [many_bytes, many] = run(25);
    const double reported = 20.0 * workers * many.at("bytes_sent_per_step").get<double>();
    EXPECT_GT(reported, 1e6);
    return (many_bytes - few_bytes) / reported;
  };
  for (const std::string strategy : {"gather-scatter", "all-reduce", "ddp"}) {
    for (const int workers : {2, 3})
      EXPECT_NEAR(share("gloo", strategy, workers), 1, 0.05) << strategy << " with " << workers << " workers";
  }
  // Through shared memory none of it goes there; what ranks say of their steps does.
  EXPECT_LT(share("shm", "ddp", 2), 0.1);
}

}  // namespace
}  // namespace syncopate::test
