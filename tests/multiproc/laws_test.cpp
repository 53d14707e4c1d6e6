// The laws again, by real processes that talk over Gloo.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>

#include "syncopate/record/read_run.h"
#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

class Processes : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }

  /// Trains to the end and returns the run's folder.
  std::filesystem::path trained(const std::string& name, const Words& more) {
    const CommandResult result = run_command(train_command(data_, folder_ / name, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_ / name;
  }
  std::string file(const std::filesystem::path& run, const std::string& name) {
    return read_text(run / name);
  }

  TempDir folder_;
  std::string data_;
  int runs_ = 0;
};

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST_F(Processes, WorkersMatchOneWorkerWithTheWholeBatch) {
  const auto whole = losses_of(trained("single", {"--strategy", "single", "--steps", "50"}));
  ASSERT_EQ(whole.size(), 50u);
  const auto two = trained("two", {"--strategy", "ddp", "--workers", "2", "--steps", "50"});
  EXPECT_LT(difference(whole, losses_of(two)), 1e-6);
  const auto three = trained("three", {"--strategy", "all-reduce", "--workers", "3", "--steps", "50"});
  EXPECT_LT(difference(whole, losses_of(three)), 1e-6);
  const auto foil = trained("foil", {"--strategy", "ddp", "--workers", "2", "--steps", "50", "--no-shuffle"});
  EXPECT_GT(difference(whole, losses_of(foil)), 1e-3);
  // A worker's own losses are its own: the two halves of a batch differ.
  EXPECT_NE(file(two, "loss_0.txt"), file(two, "loss_1.txt"));
}

TEST_F(Processes, GatherScatterAndDdpMatchAllReduceBitForBitAtTwoRanks) {
  const Words common{"--workers", "2", "--steps", "30", "--dropout", "0.1"};
  const auto with = [&](const std::string& strategy, Words more) {
    more.insert(more.end(), common.begin(), common.end());
    more.insert(more.end(), {"--strategy", strategy});
    return trained("run" + std::to_string(runs_++), more);
  };
  const auto reference = with("all-reduce", {});
  for (const auto& other : {with("ddp", {"--set", "strategy.bucket_mib=0.05"}), with("gather-scatter", {})}) {
    EXPECT_EQ(file(reference, "loss_0.txt"), file(other, "loss_0.txt"));
    EXPECT_EQ(file(reference, "loss_1.txt"), file(other, "loss_1.txt"));
    EXPECT_EQ(file(reference, "model/model.safetensors"), file(other, "model/model.safetensors"));
  }
  const auto foil = with("ddp", {"--clip", "0.9"});
  EXPECT_NE(file(reference, "model/model.safetensors"), file(foil, "model/model.safetensors"));
}

TEST_F(Processes, ResumesBitForBit) {
  const Words settings{"--workers", "2",         "--strategy", "ddp",          "--steps",
                       "150",       "--dropout", "0.1",        "--eval-every", "40"};
  const auto reference = trained("straight", settings);
  const auto run = folder_ / "stopped";
  Process process(train_command(data_, run, settings));
  ASSERT_TRUE(process.until([&] { return losses_of(run).size() > 20; })) << process.err();
  process.signal(SIGINT);
  const CommandResult stopped = process.wait();
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("continue with --resume"), std::string::npos) << stopped.err;
  ASSERT_TRUE(std::filesystem::exists(run / "checkpoint.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(run / "DONE"));
  const size_t done = losses_of(run).size();
  ASSERT_LT(done, 150u);

  Words again = settings;
  again.push_back("--resume");
  EXPECT_EQ(trained("stopped", again), run);
  EXPECT_EQ(file(reference, "loss_0.txt"), file(run, "loss_0.txt"));
  EXPECT_EQ(file(reference, "loss_1.txt"), file(run, "loss_1.txt"));
  EXPECT_EQ(file(reference, "model/model.safetensors"), file(run, "model/model.safetensors"));
  EXPECT_EQ(read_json_lines(reference / "evals.jsonl").size(), read_json_lines(run / "evals.jsonl").size());
  EXPECT_NE(file(reference, "loss_0.txt"), file(reference, "loss_1.txt"));

  again[7] = "0.2";  // another dropout is another run
  const CommandResult other = run_command(train_command(data_, run, again));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("model.dropout was 0.1 and is 0.2 now"), std::string::npos) << other.err;
}

TEST_F(Processes, AveragingEveryStepMatchesAllReduceAndDiLoCoAtRateOneMatchesLocalSgd) {
  const Words common{"--workers", "3",     "--steps",          "20",          "--clip", "0", "--lr",
                     "0.05",      "--set", "optim.momentum=0", "--optimizer", "sgd"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), common.begin(), common.end());
    return losses_of(trained("run" + std::to_string(runs_++), more));
  };
  const auto reference = with({"--strategy", "all-reduce"});
  EXPECT_LT(difference(reference, with({"--strategy", "local-sgd", "--set", "strategy.every=1"})), 2e-6);
  const auto local = with({"--strategy", "local-sgd", "--set", "strategy.every=5"});
  EXPECT_GT(difference(reference, local), 1e-4);
  Words outer{"--strategy", "diloco", "--set", "strategy.every=5", "--set", "strategy.outer_lr=1"};
  EXPECT_GT(difference(local, with(outer)), 1e-5);
  outer.insert(outer.end(), {"--set", "strategy.outer_momentum=0"});
  EXPECT_LT(difference(local, with(outer)), 2e-6);
}

TEST_F(Processes, LocalStepsResumeBitForBit) {
  const std::vector<Words> kinds{
      {"--strategy", "local-sgd", "--set", "strategy.every=4", "--set", "strategy.overlap_average=true",
       "--set", "strategy.moments=average"},
      {"--strategy", "diloco", "--set", "strategy.every=6", "--set", "strategy.fragments=2", "--set",
       "strategy.delay=4", "--set", "strategy.mixing=0.5"}};
  for (const Words& kind : kinds) {
    Words settings{"--workers", "2", "--steps", "150", "--dropout", "0.1", "--eval-every", "40"};
    settings.insert(settings.end(), kind.begin(), kind.end());
    const auto reference = trained("straight" + std::to_string(runs_), settings);
    const auto run = folder_ / ("stopped" + std::to_string(runs_++));
    Process process(train_command(data_, run, settings));
    ASSERT_TRUE(process.until([&] { return losses_of(run).size() > 20; })) << process.err();
    process.signal(SIGINT);
    const CommandResult stopped = process.wait();
    EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
    ASSERT_LT(losses_of(run).size(), 150u);
    settings.push_back("--resume");
    const CommandResult again = run_command(train_command(data_, run, settings));
    EXPECT_EQ(again.exit_code, 0) << again.err;
    for (const char* name : {"loss_0.txt", "loss_1.txt", "model/model.safetensors"}) {
      EXPECT_EQ(file(reference, name), file(run, name)) << kind[1] << ", " << name;
    }
    EXPECT_NE(file(reference, "loss_0.txt"), file(reference, "loss_1.txt"));
    const auto result = nlohmann::json::parse(file(run, "result.json"));
    EXPECT_EQ(result.at("eval").at("model"), "average of the workers");
  }
}

TEST_F(Processes, LosslessCodecMatchesNoneAndOthersSendLess) {
  const auto with = [&](const std::string& codec, const Words& more = {}) {
    Words words{"--workers", "3", "--steps", "20", "--clip", "0", "--strategy", "ddp", "--codec", codec};
    words.insert(words.end(), more.begin(), more.end());
    return trained("run" + std::to_string(runs_++), words);
  };
  const auto sent = [&](const std::filesystem::path& run) {
    return nlohmann::json::parse(file(run, "result.json")).at("bytes_sent_per_step").get<double>();
  };
  const auto reference = with("none");
  EXPECT_LT(difference(losses_of(reference), losses_of(with("top-k", {"--set", "codec.ratio=1"}))), 2e-6);
  for (const std::string codec :
       {"fp16", "bf16", "int8", "int4", "top-k", "random-k", "power-sgd", "one-bit"}) {
    Words more;
    if (codec == "power-sgd" || codec == "one-bit") more = {"--set", "codec.warmup=2"};
    if (codec == "power-sgd") more.insert(more.end(), {"--set", "codec.rank=1"});
    const auto run = with(codec, more);
    EXPECT_LT(sent(run), 0.6 * sent(reference)) << codec;
    EXPECT_GT(difference(losses_of(reference), losses_of(run)), 0) << codec << " loses something";
    EXPECT_LT(difference(losses_of(reference), losses_of(run)), 0.5) << codec << " learns all the same";
  }
}

TEST_F(Processes, CodecsResumeBitForBit) {
  for (const std::string codec : {"int4", "power-sgd", "one-bit"}) {
    Words settings{"--workers", "2", "--steps", "150", "--dropout", "0.1", "--codec", codec};
    if (codec != "int4") settings.insert(settings.end(), {"--set", "codec.warmup=5"});
    if (codec == "power-sgd") settings.insert(settings.end(), {"--set", "codec.rank=1"});
    const auto reference = trained("straight" + codec, settings);
    const auto run = folder_ / ("stopped" + codec);
    Process process(train_command(data_, run, settings));
    ASSERT_TRUE(process.until([&] { return losses_of(run).size() > 20; })) << process.err();
    process.signal(SIGINT);
    EXPECT_EQ(process.wait().exit_code, 130);
    ASSERT_LT(losses_of(run).size(), 150u);
    settings.push_back("--resume");
    const CommandResult again = run_command(train_command(data_, run, settings));
    EXPECT_EQ(again.exit_code, 0) << again.err;
    for (const char* name : {"loss_0.txt", "loss_1.txt", "model/model.safetensors"}) {
      EXPECT_EQ(file(reference, name), file(run, name)) << codec << ", " << name;
    }
  }
}

TEST_F(Processes, ResumesOnAnotherNumberOfWorkers) {
  const auto with = [&](int workers, Words more) {
    more.insert(more.end(), {"--strategy", "ddp", "--workers", std::to_string(workers), "--steps", "30"});
    return more;
  };
  const auto reference = losses_of(trained("straight", with(1, {})));
  const auto run = folder_ / "resized";
  const auto resume = [&](int workers, const Words& more) {
    Words words = with(workers, {"--resume"});
    words.insert(words.end(), more.begin(), more.end());
    return run_command(train_command(data_, run, words));
  };
  // Killed two steps after a checkpoint, by a fault: on one worker, then on two.
  const CommandResult first = run_command(
      train_command(data_, run, with(1, {"--save-every", "10", "--set", "comm.fault=0:12:forward:kill"})));
  EXPECT_NE(first.exit_code, 0);
  const CommandResult second = resume(2, {"--save-every", "10", "--set", "comm.fault=1:22:forward:kill"});
  EXPECT_NE(second.exit_code, 0);
  EXPECT_NE(second.err.find("note: workers were 1 and are 2 now: same global batches of 10"),
            std::string::npos)
      << second.err;
  EXPECT_EQ(nlohmann::json::parse(file(run, "spec.json")).at("comm.workers"), 2);
  const std::string checkpoint = file(run, "checkpoint.safetensors");
  const CommandResult third = resume(1, {});
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_LT(difference(reference, losses_of(run)), 1e-6);

  // Line k of a rank's losses is step k's, also where it was not there.
  const record::Run record = record::read_run(run);
  ASSERT_EQ(record.losses.size(), 2u);
  EXPECT_EQ(record.losses[0].size(), 30u);
  ASSERT_EQ(record.losses[1].size(), 20u) << "what came after the checkpoint did not happen";
  for (size_t step = 0; step < 20; ++step) EXPECT_EQ(std::isnan(record.losses[1][step]), step < 10) << step;
  EXPECT_EQ(record.result->workers, 1);
  const auto straight = record::read_run(folder_ / "straight").result;
  EXPECT_EQ(record.result->start_hash, straight->start_hash);
  EXPECT_EQ(record.result->data_hash, straight->data_hash);
  EXPECT_EQ(straight->data_hash.size(), 16u);

  EXPECT_GT(difference(reference, losses_of(trained("foil", with(1, {"--no-shuffle"})))), 1e-3);

  // Two that were started by hand go on, further than planned.
  const std::string master = "127.0.0.1:" + std::to_string(29400 + ::getpid() % 200);
  std::vector<std::unique_ptr<Process>> workers;
  for (const std::string rank : {"0", "1"}) {
    workers.push_back(
        std::make_unique<Process>(train_command(data_, run,
                                                {"--resume", "--extend", "--strategy", "ddp", "--steps", "34",
                                                 "--rank", rank, "--world-size", "2", "--master", master})));
  }
  for (const auto& worker : workers) {
    const CommandResult result = worker->wait(60);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(nlohmann::json::parse(file(run, "spec.json")).at("comm.workers"), 2);
  EXPECT_EQ(losses_of(run).size(), 34u);
  EXPECT_EQ(record::read_run(run).losses[1].size(), 34u);

  // What cannot resume leaves the folder as it was.
  const std::string settings = file(run, "spec.json"), environment = file(run, "env.json");
  write_text(run / "checkpoint.safetensors", "damaged");
  const CommandResult refused = resume(3, {"--steps", "34"});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_FALSE(environment.empty());
  EXPECT_EQ(file(run, "spec.json"), settings);
  EXPECT_EQ(file(run, "env.json"), environment);
  EXPECT_TRUE(std::filesystem::exists(run / "DONE"));

  const CommandResult other = resume(2, {"--global-batch", "20"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("train.global_batch was 10 and is 20 now"), std::string::npos) << other.err;
  // The foil: a label that changed since is other data of the same size.
  std::filesystem::remove(run / "DONE");
  write_text(run / "checkpoint.safetensors", checkpoint);
  std::string table = read_text(folder_ / "data/train.tsv");
  table[table.find("\t1\n") + 1] = '0';
  write_text(folder_ / "data/train.tsv", table);
  const CommandResult changed = resume(2, {"--steps", "34"});
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("a run resumes with the data and vocabulary it began with"), std::string::npos)
      << changed.err;
}

TEST_F(Processes, ResumingWithOtherThreadsWarns) {
  const Words settings{"--strategy", "single", "--steps", "20", "--save-every", "10"};
  const auto run = trained("run", settings);
  Words again = settings;
  again.insert(again.end(), {"--resume", "--extend", "--threads", "2", "--steps", "30"});
  const CommandResult result = run_command(train_command(data_, run, again));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("threads was 1 and is 2 now"), std::string::npos) << result.err;
  EXPECT_EQ(losses_of(run).size(), 30u);
}

TEST_F(Processes, RejectsADamagedCheckpoint) {
  const Words settings{"--strategy", "single", "--steps", "10"};
  const auto run = trained("run", settings);
  std::string bytes = file(run, "checkpoint.safetensors");
  bytes[bytes.size() / 2] ^= 1;
  write_text(run / "checkpoint.safetensors", bytes);
  Words again = settings;
  again.insert(again.end(), {"--resume", "--extend", "--steps", "20"});
  const CommandResult result = run_command(train_command(data_, run, again));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("is damaged (its checksum does not match)"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace syncopate::test
