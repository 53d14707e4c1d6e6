// Workers that run free, as real processes: over shared memory and with servers over Gloo.
#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <numeric>
#include <set>

#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    names.insert(entry.path().filename().string());
  return names;
}

class Asynchronous : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }

  CommandResult train(const std::string& name, const Words& more) {
    return run_command(train_command(data_, folder_ / name, more));
  }
  std::filesystem::path trained(const std::string& name, const Words& more) {
    const CommandResult result = train(name, more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_ / name;
  }
  static std::string file(const std::filesystem::path& run, const std::string& name) {
    return read_text(run / name);
  }
  static nlohmann::json result_of(const std::filesystem::path& run) {
    return nlohmann::json::parse(read_text(run / "result.json"));
  }
  static int64_t sum(const nlohmann::json& numbers) {
    const auto all = numbers.get<std::vector<int64_t>>();
    return std::accumulate(all.begin(), all.end(), int64_t{0});
  }
  void expect_complaint(const Words& flags, const std::string& words) {
    const CommandResult result = train("bad", flags);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "bad"));
  }

  TempDir folder_;
  std::string data_;
};

const Words kLockstep{"--strategy", "parameter-server", "--set", "strategy.staleness=0"};

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(Asynchronous, OneWorkerMatchesSingleBitForBit) {
  const Words common{"--steps", "30", "--dropout", "0.1"};
  const auto reference = trained("single", Words{"--strategy", "single"} + common);
  for (const std::string strategy : {"hogwild", "parameter-server"}) {
    const auto run = trained(strategy, Words{"--strategy", strategy, "--workers", "1"} + common);
    EXPECT_EQ(file(reference, "loss_0.txt"), file(run, "loss_0.txt")) << strategy;
    EXPECT_EQ(file(reference, "model/model.safetensors"), file(run, "model/model.safetensors")) << strategy;
    EXPECT_EQ(losses_of(reference), losses_of(run));
  }
  const auto foil = trained("foil", Words{"--strategy", "hogwild", "--clip", "0.9"} + common);
  EXPECT_NE(file(reference, "model/model.safetensors"), file(foil, "model/model.safetensors"));
}

TEST_F(Asynchronous, LockstepServersMatchAllReduceBitForBitAtTwoWorkers) {
  const Words common{"--workers", "2", "--steps", "30", "--dropout", "0.1"};
  const auto reference = trained("all-reduce", Words{"--strategy", "all-reduce"} + common);
  const auto served = trained("served", kLockstep + common);
  for (const char* name : {"loss_0.txt", "loss_1.txt", "model/model.safetensors"})
    EXPECT_EQ(file(reference, name), file(served, name)) << name;
  const auto foil = trained("foil", Words{"--strategy", "parameter-server"} + common);
  EXPECT_NE(file(reference, "model/model.safetensors"), file(foil, "model/model.safetensors"));
}

TEST_F(Asynchronous, EvaluatedModelIsTheSavedModelBitForBit) {
  for (const std::string strategy : {"hogwild", "parameter-server"}) {
    // Twenty test examples in four batches, of which the two workers take two each.
    const auto run = trained(strategy, {"--strategy", strategy, "--workers", "2", "--steps", "25",
                                        "--eval-every", "5", "--set", "train.eval_batch=6"});
    const auto evals = read_json_lines(run / "evals.jsonl");
    ASSERT_GE(evals.size(), 5u);
    const nlohmann::json last = result_of(run).at("eval");
    EXPECT_EQ(last.at("loss"), evals.back().at("loss"));
    EXPECT_EQ(last.at("model"), strategy == "hogwild" ? "shared by all workers" : "server");
    const CommandResult score =
        run_command({program().string(), "evaluate", "--task", "sst2", "--data", data_ + "/dev.tsv",
                     "--model", run.string(), "--batch-size", "6", "--threads", "1", "--json"});
    ASSERT_EQ(score.exit_code, 0) << score.err;
    const auto again = nlohmann::json::parse(score.out);
    EXPECT_EQ(again.at("loss").get<double>(), last.at("loss").get<double>());
    EXPECT_EQ(again.at("accuracy"), last.at("accuracy"));
    EXPECT_NE(again.at("loss").get<double>(), evals.front().at("loss").get<double>());
  }
}

TEST_F(Asynchronous, ASlowWorkerDoesNotSlowTheOthers) {
  for (const std::string strategy : {"hogwild", "parameter-server"}) {
    const auto run = trained(strategy, {"--strategy", strategy, "--workers", "2", "--steps", "60", "--set",
                                        "comm.slow=1:20", "--eval-every", "60"});
    const nlohmann::json result = result_of(run);
    EXPECT_EQ(sum(result.at("updates")), 120);
    EXPECT_GT(result.at("updates").at(0), result.at("updates").at(1)) << result.at("updates").dump();
    for (int worker = 0; worker < 2; ++worker)
      EXPECT_EQ(sum(result.at("staleness").at(worker)), result.at("updates").at(worker).get<int64_t>());
    EXPECT_EQ(read_json_lines(run / "steps.jsonl").size(), 120u);
  }
  const auto bound = trained("bound", {"--strategy", "parameter-server", "--workers", "2", "--steps", "30",
                                       "--set", "comm.slow=1:20", "--set", "strategy.staleness=1"});
  // An epoch is a section: at each end of one the fast worker may be two updates ahead, and a ticket more.
  const auto updates = result_of(bound).at("updates");
  EXPECT_EQ(sum(updates), 60);
  EXPECT_LE(updates.at(0).get<int64_t>() - updates.at(1).get<int64_t>(), 3 * 5) << updates.dump();
}

TEST_F(Asynchronous, ResumesWhereItWasInterrupted) {
  const std::vector<Words> settings{{"--strategy", "hogwild", "--workers", "1"},
                                    {"--strategy", "parameter-server", "--workers", "1"},
                                    kLockstep + Words{"--workers", "2", "--set", "strategy.servers=2"}};
  for (size_t i = 0; i < settings.size(); ++i) {
    const Words all = settings[i] + Words{"--steps", "150", "--dropout", "0.1", "--eval-every", "40"};
    const auto reference = trained("straight" + std::to_string(i), all);
    const auto run = folder_ / ("stopped" + std::to_string(i));
    Process process(train_command(data_, run, all));
    ASSERT_TRUE(process.until([&] { return read_text(run / "loss_0.txt").size() > 400; })) << process.err();
    process.signal(SIGINT);
    const CommandResult stopped = process.wait();
    EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
    ASSERT_LT(losses_of(run).size(), 150u);
    EXPECT_EQ(trained("stopped" + std::to_string(i), all + Words{"--resume"}), run);
    EXPECT_EQ(file(reference, "loss_0.txt"), file(run, "loss_0.txt"));
    EXPECT_EQ(file(reference, "model/model.safetensors"), file(run, "model/model.safetensors"));
    EXPECT_EQ(losses_of(reference), losses_of(run));
  }
}

TEST_F(Asynchronous, ResumesWithADifferentNumberOfServers) {
  const Words all = kLockstep + Words{"--workers", "2", "--clip", "0", "--schedule", "constant", "--warmup"};
  const auto straight = trained("straight", all + Words{"3", "--steps", "30"});
  const auto run = trained("run", all + Words{"3", "--steps", "12"});
  trained("run", all + Words{"3", "--steps", "30", "--set", "strategy.servers=2", "--resume", "--extend"});
  EXPECT_EQ(file(straight, "model/model.safetensors"), file(run, "model/model.safetensors"));
  const auto foil = trained("foil", all + Words{"5", "--steps", "30"});
  EXPECT_NE(file(straight, "model/model.safetensors"), file(foil, "model/model.safetensors"));
}

TEST_F(Asynchronous, WorkersResumeWithoutLosingOrRepeatingTickets) {
  for (const std::string strategy : {"hogwild", "parameter-server"}) {
    const Words all{"--strategy", strategy, "--workers", "2", "--steps", "400"};
    const auto run = folder_ / strategy;
    Process process(train_command(data_, run, all));
    ASSERT_TRUE(process.until([&] { return read_text(run / "loss_1.txt").size() > 400; })) << process.err();
    process.signal(SIGINT);
    EXPECT_EQ(process.wait().exit_code, 130);
    trained(strategy, all + Words{"--resume"});
    const auto steps = read_json_lines(run / "steps.jsonl");
    ASSERT_EQ(steps.size(), 800u);
    for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].at("step"), i + 1);
    const auto updates = result_of(run).at("updates");
    EXPECT_EQ(sum(updates), 800);
    for (const int worker : {0, 1}) {
      const std::string losses = read_text(run / ("loss_" + std::to_string(worker) + ".txt"));
      EXPECT_EQ(std::count(losses.begin(), losses.end(), '\n'), updates.at(static_cast<size_t>(worker)));
    }
  }
}

struct FreeDeath {
  const char* strategy;
  int rank;
  const char* phase;
};

class KilledFreeRank : public Asynchronous, public testing::WithParamInterface<FreeDeath> {};
INSTANTIATE_TEST_SUITE_P(
    Places, KilledFreeRank,
    testing::Values(FreeDeath{"hogwild", 0, "backward"}, FreeDeath{"hogwild", 1, "exchange"},
                    FreeDeath{"parameter-server", 0, "forward"}, FreeDeath{"parameter-server", 1, "exchange"},
                    FreeDeath{"parameter-server", 2, "update"},
                    FreeDeath{"parameter-server", 1, "checkpoint"}),
    [](const auto& at) {
      return std::string(at.param.strategy).substr(0, 4) + std::to_string(at.param.rank) + at.param.phase;
    });

TEST_P(KilledFreeRank, IsNamedStopsTheOthersAndLeavesNothingBehind) {
  const FreeDeath death = GetParam();
  const auto before = shared_memory_files();
  const CommandResult result =
      train("run", {"--strategy", death.strategy, "--workers", "2", "--steps", "100000", "--save-every", "6",
                    "--set", "comm.fault=" + std::to_string(death.rank) + ":4:" + death.phase + ":kill"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const size_t sentence = result.err.find("syncopate: ");
  ASSERT_NE(sentence, std::string::npos) << result.err;
  const std::string last = result.err.substr(sentence);
  EXPECT_NE(last.find("rank " + std::to_string(death.rank)), std::string::npos) << result.err;
  EXPECT_EQ(last.find('\n'), last.size() - 1) << "one sentence: " << result.err;
  EXPECT_TRUE(processes_with(folder_.path().string()).empty());
  EXPECT_EQ(shared_memory_files(), before);
}

TEST_F(Asynchronous, HangingWorkerIsGivenUpAtTheTimeout) {
  for (const Words& strategy : {Words{"--strategy", "hogwild"}, Words{"--strategy", "parameter-server"},
                                Words{"--strategy", "parameter-server", "--set", "strategy.staleness=2"}}) {
    const CommandResult result =
        train("run" + strategy.back(), strategy + Words{"--workers", "2", "--steps", "100", "--timeout", "4",
                                                        "--set", "comm.fault=1:4:backward:hang"});
    EXPECT_EQ(result.exit_code, 4) << result.err;
    EXPECT_NE(result.err.find("rank 1"), std::string::npos) << result.err;
    EXPECT_TRUE(processes_with(folder_.path().string()).empty());
  }
}

TEST_F(Asynchronous, LastRanksAreServersWhenStartedByHand) {
  const std::string master = "127.0.0.1:" + std::to_string(29200 + ::getpid() % 200);
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(std::make_unique<Process>(
        train_command(data_, folder_ / "run",
                      {"--strategy", "parameter-server", "--steps", "10", "--rank", std::to_string(rank),
                       "--world-size", "3", "--master", master})));
  }
  for (auto& rank : ranks) {
    const CommandResult result = rank->wait(60);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(result_of(folder_ / "run").at("workers"), 2);
  EXPECT_EQ(sum(result_of(folder_ / "run").at("updates")), 20);
}

TEST_F(Asynchronous, HogwildRejectsSeveralMachines) {
  if (!namespaces_allowed()) GTEST_SKIP() << "this system allows no namespaces of one's own";
  const std::string master = "127.0.0.1:" + std::to_string(29400 + ::getpid() % 200);
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Words words = train_command(data_, folder_ / "run",
                                {"--strategy", "hogwild", "--steps", "10", "--rank", std::to_string(rank),
                                 "--world-size", "2", "--master", master});
    if (rank == 1) {  // a machine is known by its name
      words = Words{"unshare",
                    "--user",
                    "--map-root-user",
                    "--uts",
                    "sh",
                    "-c",
                    "echo elsewhere > /proc/sys/kernel/hostname && exec \"$@\"",
                    "sh"} +
              words;
    }
    ranks.push_back(std::make_unique<Process>(words));
  }
  const CommandResult first = ranks[0]->wait(60), second = ranks[1]->wait(60);
  EXPECT_TRUE(first.exit_code == 2 || second.exit_code == 2) << first.err << second.err;
  for (const std::string& said : {first.err, second.err})
    EXPECT_NE(said.find("use the strategy parameter-server instead"), std::string::npos) << said;
}

TEST_F(Asynchronous, RejectsBadSettings) {
  const Words server{"--strategy", "parameter-server", "--steps", "5"};
  expect_complaint(server + Words{"--workers", "2", "--set", "strategy.servers=3"},
                   "more than the 2 workers");
  expect_complaint(server + Words{"--set", "strategy.servers=0"},
                   "strategy.servers must be 1 or more, got 0");
  expect_complaint(server + Words{"--set", "strategy.staleness=-1"}, "strategy.staleness must be 0 or more");
  expect_complaint(server + Words{"--set", "strategy.staleness=soon"}, "or inf, got \"soon\"");
  expect_complaint(server + Words{"--rank", "0", "--world-size", "1"}, "leaves no worker");
  expect_complaint({"--strategy", "hogwild", "--set", "strategy.state=some"}, "strategy.state must be own");
  expect_complaint({"--strategy", "hogwild", "--set", "comm.slow=fast"}, "comm.slow must be RANK:FACTOR");
}

TEST_F(Asynchronous, DivergenceExitsWithFive) {
  for (const std::string strategy : {"hogwild", "parameter-server"}) {
    const CommandResult result =
        train(strategy, {"--strategy", strategy, "--workers", "2", "--steps", "200", "--lr", "1e30", "--clip",
                         "0", "--optimizer", "sgd", "--warmup", "0"});
    EXPECT_EQ(result.exit_code, 5) << result.err;
    EXPECT_NE(result.err.find("not a number"), std::string::npos) << result.err;
  }
}

/// Several processes on one GPU.
class Cuda : public Asynchronous {};

TEST_F(Cuda, AsynchronousWorkersShareAGpu) {
  if (!at::hasCUDA()) GTEST_SKIP() << "needs a GPU";
  const Words common{"--device", "cuda", "--steps", "40", "--clip", "1"};
  const auto losses = [&](const std::string& name, const Words& flags) {
    return losses_of(trained(name, flags + common));
  };
  const auto single = losses("single", {"--strategy", "single"});
  EXPECT_EQ(single, losses("one", {"--strategy", "hogwild", "--workers", "1"}));
  for (const std::string workers : {"2", "4"}) {
    const auto wild = losses("hogwild" + workers, {"--strategy", "hogwild", "--workers", workers});
    EXPECT_LT(wild.back(), wild.front());
    EXPECT_EQ(result_of(folder_ / ("hogwild" + workers)).at("eval").at("model"), "shared by all workers")
        << "in device memory";
    const auto served = losses("server" + workers, {"--strategy", "parameter-server", "--workers", workers});
    EXPECT_LT(served.back(), served.front());
  }
}

}  // namespace
}  // namespace syncopate::test
