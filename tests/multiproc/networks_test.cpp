// Runs whose workers sit on an emulated network.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

class Networks : public testing::Test {
 protected:
  void SetUp() override {
    if (!namespaces_allowed()) GTEST_SKIP() << "needs network namespaces";
    data_ = small_sst2(folder_);
  }

  CommandResult train(const std::string& name, const Words& more) {
    return run_command(train_command(data_, folder_ / name, more));
  }
  nlohmann::json result_of(const std::string& name) {
    return nlohmann::json::parse(read_text(folder_ / name / "result.json"));
  }

  TempDir folder_;
  std::string data_;
};

TEST_F(Networks, TrainToTheSameBitsAsWithoutAndTakeWhatTheLinkTakes) {
  const Words settings{"--workers",           "2",       "--strategy", "all-reduce", "--set",
                       "strategy.whole=true", "--steps", "6"};
  Words inside = settings;
  inside.insert(inside.end(), {"--network", "two-sites", "--scale", "20"});
  const CommandResult here = train("here", settings), there = train("there", inside);
  ASSERT_EQ(here.exit_code, 0) << here.err;
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_EQ(losses_of(folder_ / "there"), losses_of(folder_ / "here"));
  EXPECT_EQ(read_text(folder_ / "there/model/model.safetensors"),
            read_text(folder_ / "here/model/model.safetensors"));
  EXPECT_NE(read_text(folder_ / "there/spec.json"), read_text(folder_ / "here/spec.json")) << "another run";

  const nlohmann::json plain = result_of("here"), result = result_of("there");
  EXPECT_FALSE(plain.contains("network"));
  const nlohmann::json& network = result.at("network");
  EXPECT_EQ(network.at("name"), "two-sites");
  EXPECT_EQ(network.at("seats"), nlohmann::json({0, 1}));
  ASSERT_EQ(network.at("links").size(), 2u);
  // Both ends send what they counted, and headers.
  const double sent = result.at("bytes_sent_per_step"), carried = network["links"][0].at("bytes");
  EXPECT_GT(carried, sent);
  EXPECT_LT(carried, 1.3 * sent);
  // A step cannot end before the link has carried it.
  const double rate = network["links"][0].at("gbit").get<double>() * 1e9 / 8;
  EXPECT_GT(result.at("exchange_ms").get<double>(), 0.8e3 * sent / rate);
  EXPECT_GT(result.at("exchange_ms").get<double>(), 2 * plain.at("exchange_ms").get<double>());
  // Made behind the result, which was there already; bytes are none of it.
  const nlohmann::json& predicted = result.at("predicted");
  EXPECT_GT(predicted.at("exchange_ms").get<double>(), 0);
  EXPECT_TRUE(predicted.at("bytes_sent_per_step").is_null());
  EXPECT_NE(there.err.find("predicted from this run's own compute"), std::string::npos) << there.err;
  EXPECT_NE(read_text(folder_ / "there/network.toml").find("ohio-0"), std::string::npos);
  EXPECT_TRUE(processes_with(folder_.path().string()).empty());
}

TEST_F(Networks, KeepSharedMemoryOnOneHost) {
  const Words hogwild{"--workers", "2",    "--strategy", "hogwild", "--steps", "4",
                      "--network", "spot", "--scale",    "10",      "--hosts"};
  Words apart = hogwild, together = hogwild;
  apart.push_back("box-0,box-1");
  together.push_back("box-0");
  const CommandResult refused = train("apart", apart);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("--hosts box-0"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "apart")) << "nothing was begun";
  const CommandResult allowed = train("together", together);
  EXPECT_EQ(allowed.exit_code, 0) << allowed.err;

  // Workers that exchange through memory: by themselves on one host alone, and told to on two they are
  // refused.
  const auto exchange = [&](const std::string& name, const std::string& hosts, const std::string& backend) {
    return train(name, {"--workers", "2", "--strategy", "ddp", "--steps", "2", "--network", "spot", "--scale",
                        "10", "--hosts", hosts, "--backend", backend});
  };
  ASSERT_EQ(exchange("one", "box-0", "auto").exit_code, 0);
  ASSERT_EQ(exchange("two", "box-0,box-1", "auto").exit_code, 0);
  const auto backend_of = [&](const std::string& name) {
    return nlohmann::json::parse(read_text(folder_ / name / "env.json")).at("backend");
  };
  EXPECT_EQ(backend_of("one"), "shm");
  EXPECT_EQ(backend_of("two"), "gloo");
  const CommandResult told = exchange("told", "box-0,box-1", "shm");
  EXPECT_EQ(told.exit_code, 2) << told.err;
  const size_t said = told.err.find("the backend shm is for the workers of one host");
  ASSERT_NE(said, std::string::npos) << told.err;
  EXPECT_EQ(told.err.find("the backend shm", said + 1), std::string::npos) << "said once: " << told.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "told")) << "nothing was begun";
}

/// Two hosts of a cluster that has four devices on each, two workers on either.
const Words kTwoOnTwo{"--workers", "4",       "--strategy", "ddp",     "--network",
                      "spot",      "--scale", "10",         "--hosts", "box-0:2,box-1:2"};

TEST_F(Networks, WorkersThatShareHostsCrossTheLinkOncePerHost) {
  const auto of = [&](const std::string& name, const Words& more) {
    Words words = kTwoOnTwo;
    words.insert(words.end(), {"--steps", "6", "--set", "strategy.sparse_rows=false"});
    words.insert(words.end(), more.begin(), more.end());
    return train(name, words);
  };
  const CommandResult levels = of("levels", {}), gloo = of("gloo", {"--backend", "gloo"});
  ASSERT_EQ(levels.exit_code, 0) << levels.err;
  ASSERT_EQ(gloo.exit_code, 0) << gloo.err;
  EXPECT_NE(levels.err.find("4 workers over shared memory within hosts and gloo between them"),
            std::string::npos)
      << levels.err;
  const nlohmann::json environment = nlohmann::json::parse(read_text(folder_ / "levels/env.json"));
  EXPECT_EQ(environment.at("backend"), "shm+gloo");
  // Sums are the same but for their order.
  const std::vector<double> mine = losses_of(folder_ / "levels"), theirs = losses_of(folder_ / "gloo");
  ASSERT_EQ(mine.size(), theirs.size());
  for (size_t k = 0; k < mine.size(); ++k) {
    EXPECT_NEAR(mine[k], theirs[k], 1e-5);
    EXPECT_GT(std::abs(mine[k] - theirs[(k + 1) % theirs.size()]), 1e-5);  // foil: another step's
  }
  // A ring of four sends 2 * 3 / 4 of the gradient over each link, two leaders 2 * 1 / 2 of it.
  // Rank 0's parameters at the start go the other way.
  const auto carried = [&](const std::string& name) {
    const nlohmann::json link = result_of(name).at("network").at("links").at(1);
    EXPECT_EQ(link.at("from"), 1);
    return link.at("bytes").get<double>();
  };
  EXPECT_NEAR(carried("gloo") / carried("levels"), 1.5, 0.05);
  EXPECT_EQ(result_of("gloo").at("bytes_sent_per_step"), result_of("levels").at("bytes_sent_per_step"))
      << "counted alike";
}

TEST_F(Networks, AKilledWorkerOfAHostThatIsSharedIsReported) {
  for (const std::string rank : {"1", "2"}) {  // beside a leader, and a leader
    Words words = kTwoOnTwo;
    words.insert(words.end(), {"--steps", "1000", "--set", "comm.fault=" + rank + ":3:exchange:kill"});
    const CommandResult result = train("run" + rank, words);
    EXPECT_EQ(result.exit_code, 4) << result.err;
    EXPECT_NE(result.err.find("rank " + rank + " was killed by signal 9"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("exchange of step 3"), std::string::npos) << result.err;
    EXPECT_TRUE(processes_with(folder_.path().string()).empty());
  }
}

TEST_F(Networks, AKilledWorkerIsReportedAsAnywhere) {
  const CommandResult result =
      train("run", {"--workers", "2", "--strategy", "ddp", "--steps", "1000", "--network", "two-sites",
                    "--scale", "20", "--set", "comm.fault=1:3:backward:kill"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.err.find("rank 1 was killed by signal 9"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("backward of step 3"), std::string::npos) << result.err;
  EXPECT_TRUE(processes_with(folder_.path().string()).empty());
}

TEST_F(Networks, HoldNoOther) {
  const std::string program = train_command(data_, "", {}).front();
  const CommandResult nested =
      run_command({program, "lab", "--network", "two-sites", "--workers", "1", "--exec", "--", "sh", "-c",
                   program + " probe --network worldwide --workers 2 --no-step; echo $?; " + program +
                       " lab --network worldwide --exec -- true; echo $?"});
  EXPECT_EQ(nested.out, "2\n2\n") << nested.err;
  EXPECT_NE(nested.err.find("inside lab two-sites-"), std::string::npos) << nested.err;
}

TEST_F(Networks, RefuseFlagsThatDoNothing) {
  const std::string program = train_command(data_, "", {}).front();
  const std::string file = folder_ / "wrong.toml";
  for (const auto& [words, part] : std::vector<std::pair<Words, std::string>>{
           {{"probe", "--no-links", "--out", file}, "--no-links"},
           {{"network", "list", "--out", file}, "--out"},
           {{"network", "show", "spot", "--regions", "a"}, "--regions"},
           {{"evaluate", "--model", "x", "--scale", "2"}, "--network"},
           {{"lab", "--network", "spot", "--", "probe", "--network", "regional"}, "--network"},
           // The hosts named are the workers.
           {{"lab", "--network", "two-sites", "--hosts", "0,32", "--", "train", "--strategy", "hogwild"},
            "from ohio-0 to virginia-0"}}) {
    Words command{program};
    command.insert(command.end(), words.begin(), words.end());
    const CommandResult refused = run_command(command);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

TEST_F(Networks, RefuseWhatCannotBe) {
  for (const auto& [words, part] : std::vector<std::pair<Words, std::string>>{
           {{"--network", "two-sitse"}, "two-sites"},
           {{"--network", "two-sites", "--workers", "2", "--hosts", "ohio-0"}, "ohio-0"},
           {{"--scale", "10"}, "--network"},
           {{"--network", "two-sites", "--scale", "0"}, "--scale"}}) {
    const CommandResult refused = train("wrong", words);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "wrong"));
  }
}

}  // namespace
}  // namespace syncopate::test
