// Where a run starts from, what it computes with, and what it refuses, through the program.
#include <ATen/ATen.h>

#include "syncopate/tensor/safetensors.h"
#include "tests/e2e/program.h"

namespace syncopate::test {
namespace {

class Starts : public Program {
 protected:
  /// Whether the two runs' models have the same bits in the tensors whose name begins with `prefix`.
  bool same(const std::string& a, const std::string& b, const std::string& prefix) const {
    const tensor::SafetensorsFile one(folder_ / a / "model/model.safetensors");
    const tensor::SafetensorsFile other(folder_ / b / "model/model.safetensors");
    bool equal = true, found = false;
    for (const auto& [name, info] : one.tensors()) {
      if (!name.starts_with(prefix) || name.find("pooler") != std::string::npos) continue;
      found = true;
      equal = equal && other.tensors().contains(name) && at::equal(one.read(name), other.read(name));
    }
    EXPECT_TRUE(found) << prefix;
    return equal;
  }
};

TEST_F(Starts, FromARunWithAFreshHead) {
  const Words still{"--strategy", "single", "--lr", "0", "--steps", "1"};
  trained("mlm", "language", {"--strategy", "single", "--steps", "20"});
  const auto from = [&](const std::string& name, const std::string& folder) {
    Words words = still;
    words.insert(words.end(), {"--init-from", folder});
    return trained("csv", name, words);
  };
  const Json result = from("tables", folder_ / "language");
  EXPECT_EQ(result["init_from"], (folder_ / "language").string());
  EXPECT_TRUE(same("language", "tables", "bert.")) << "nothing was learnt at a rate of 0";
  from("again", folder_ / "language/model");
  EXPECT_EQ(losses_of(folder_ / "tables"), losses_of(folder_ / "again")) << "a run stands for its model";

  Words fresh = still;
  fresh.insert(fresh.end(), {"--vocab", folder_ / "language/model/vocab.txt"});
  trained("csv", "fresh", fresh);
  EXPECT_NE(losses_of(folder_ / "fresh"), losses_of(folder_ / "tables"));
  EXPECT_FALSE(same("fresh", "tables", "bert.encoder."));

  // From a model that has a head for the task: it is not taken.
  trained("csv", "taught", {"--strategy", "single", "--init-from", folder_ / "language", "--steps", "6"});
  from("second", folder_ / "taught");
  EXPECT_TRUE(same("taught", "second", "bert."));
  EXPECT_FALSE(same("taught", "second", "classifier."));
  Words goes_on = still;
  goes_on.insert(goes_on.end(), {"--model", folder_ / "taught"});
  trained("csv", "third", goes_on);
  EXPECT_TRUE(same("taught", "third", "classifier.")) << "--model takes the head as well";

  expect_complaint(train("csv", "none", {"--init-from", folder_ / "nowhere"}), 2,
                   "neither a run's folder nor");
  expect_complaint(train("csv", "none", {"--init-from", folder_ / "taught", "--model", "bert-mini"}), 2,
                   "is not a bert-mini");
  Words named = still;
  named.insert(named.end(), {"--init-from", folder_ / "language", "--model", "bert-tiny"});
  trained("csv", "named", named);
  EXPECT_EQ(losses_of(folder_ / "tables"), losses_of(folder_ / "named"))
      << "naming its shape changes nothing";
}

TEST_F(Starts, ImagesFromARunWithAFreshHead) {
  trained("idx", "first", {"--strategy", "single"});
  const Words still{"--strategy", "single", "--lr", "0", "--steps", "1"};
  Words words = still;
  words.insert(words.end(), {"--init-from", folder_ / "first"});
  const Json result = trained("idx", "second", words);
  EXPECT_EQ(result["init_from"], (folder_ / "first").string());
  EXPECT_TRUE(same("first", "second", "layer1.0.conv1."));
  EXPECT_FALSE(same("first", "second", "fc."));
  trained("idx", "fresh", still);
  EXPECT_FALSE(same("fresh", "second", "layer1.0.conv1."));
}

TEST_F(Starts, ExperimentWithTwoPhases) {
  const std::string common = "threads = 1\nglobal_batch = 8\nsteps = 3\nmax_length = 16\n";
  const std::string table =
      "task = \"csv\"\ntext = \"text\"\nlabel = \"label\"\ndata = \"" + data_for("csv") + "\"\n";
  write_text(folder_ / "x.toml",
             "title = \"words first\"\n[settings]\n" + table + common +
                 "[[phase]]\nname = \"words\"\ntask = \"mlm\"\nstrategy = \"single\"\ndata = \"" +
                 data_for("mlm") + "\"\n" + common +
                 "[[phase]]\nname = \"tables\"\ninit_from = \"phase:words\"\nworkers = 2\n" + table + common +
                 "[[row]]\nname = \"from nothing\"\nstrategy = \"single\"\n"
                 "[[row]]\nname = \"from both\"\nstrategy = \"single\"\ninit_from = \"phase:tables\"\n");
  const CommandResult first = run({"compare", folder_ / "x.toml", "--out", folder_ / "runs"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("from nothing"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("from both"), std::string::npos) << first.out;
  const Json results = Json::parse(read_text(folder_ / "runs/results.json"));
  ASSERT_EQ(results["arms"].size(), 2u) << "phases are not compared";
  size_t folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "runs"))
    folders += entry.is_directory() ? 1 : 0;
  EXPECT_EQ(folders, 4u) << "two phases and two rows";
  const CommandResult again = run({"compare", folder_ / "x.toml", "--out", folder_ / "runs"});
  EXPECT_EQ(again.out, first.out) << "nothing is trained twice";
}

TEST_F(Starts, HalfPrecisionIsNotUsedWhereItIsSlower) {
  trained("csv", "fp32", {"--strategy", "single"});
  for (const char* precision : {"bf16", "fp16"}) {
    const CommandResult result = train("csv", precision, {"--strategy", "single", "--precision", precision});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json record = Json::parse(read_text(folder_ / precision / "result.json"));
    if (record["precision"] != "fp32") {  // a CPU where it pays
      const auto half = losses_of(folder_ / precision), full = losses_of(folder_ / "fp32");
      ASSERT_EQ(half.size(), full.size());
      for (size_t i = 0; i < half.size(); ++i) EXPECT_NEAR(half[i], full[i], 0.05 * full[i]) << precision;
      EXPECT_NE(half, full) << "it was computed in " << precision;
      continue;
    }
    EXPECT_NE(result.err.find("computing in fp32"), std::string::npos) << result.err;
    EXPECT_EQ(losses_of(folder_ / precision), losses_of(folder_ / "fp32"));
  }
  trained("csv", "foil", {"--strategy", "single", "--lr", "1.01e-3"});
  EXPECT_NE(losses_of(folder_ / "foil"), losses_of(folder_ / "fp32"));
  // Wherever this runs: kernels without instructions for bf16.
  ::setenv("SYNCOPATE_KERNELS", "avx512", 1);
  const CommandResult without = train("csv", "without", {"--strategy", "single", "--precision", "bf16"});
  ::unsetenv("SYNCOPATE_KERNELS");
  EXPECT_NE(without.err.find("bf16 products would be slower than fp32 on this CPU"), std::string::npos)
      << without.err;
  EXPECT_EQ(Json::parse(read_text(folder_ / "without" / "result.json"))["precision"], "fp32");
  expect_complaint(train("csv", "none", {"--precision", "fp8"}), 2, "fp8");
}

TEST_F(Starts, RejectsAMissingGpu) {
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "there is one here";
  expect_complaint(train("csv", "none", {"--device", "cuda"}), 2, "--device cuda asks for a GPU");
  expect_complaint(train("csv", "none", {"--device", "cuda:1", "--strategy", "ddp", "--workers", "2"}), 2,
                   "--device cuda:1");
  expect_complaint(train("csv", "none", {"--device", "tpu"}), 2, "--device must be cpu, cuda or cuda:NUMBER");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

TEST_F(Starts, BadInputExitsWithItsCode) {
  const auto table = [&](const std::string& text, const Words& more = {}) {
    write_text(folder_ / "bad.csv", text);
    Words words{"--data", folder_ / "bad.csv"};
    words.insert(words.end(), more.begin(), more.end());
    return train("csv", "bad", words);
  };
  const std::string good = "text,label\n\"a b\",x\nc,y\nd,x\n";
  expect_complaint(table("text,label\na,x\nb,y,z\n"), 3, "bad.csv:3: 3 columns where the header has 2");
  expect_complaint(table("text,label\n\"a,x\nb,y\n"), 3, "bad.csv:2: a quote is opened but not closed");
  expect_complaint(table(good, {"--text", "sentence"}), 2, "has no text column \"sentence\"");
  expect_complaint(table("text,label\n", {}), 3, "bad.csv");

  // A label that the training file does not have.
  const std::filesystem::path folder = folder_ / "labels";
  std::filesystem::create_directories(folder);
  write_text(folder / "train.csv", good);
  write_text(folder / "dev.csv", "text,label\na,x\nb,z\n");
  expect_complaint(train("csv", "bad", two_workers_and({"--data", folder})), 3,
                   "dev.csv:3: the label \"z\" is not among");

  write_text(folder_ / "cifar.bin", std::string(2 * 3073 + 5, '\1'));
  expect_complaint(train("cifar10", "bad", {"--data", folder_ / "cifar.bin"}), 3, "cifar.bin has 6151 bytes");
  write_text(folder_ / "empty.txt", "");
  expect_complaint(train("mlm", "bad", {"--data", folder_ / "empty.txt"}), 3, "empty.txt");
  expect_complaint(train("supersense", "bad", {"--data", folder_ / "nowhere"}), 3, "nowhere does not exist");
  std::filesystem::create_directories(folder_ / "roberta");
  write_text(folder_ / "roberta/config.json", "{\"model_type\": \"roberta\"}");
  expect_complaint(table(good, {"--model", folder_ / "roberta"}), 3, "not supported: model_type roberta");
  expect_complaint(table(good, {"--encoding", "utf-42"}), 2, "the encoding \"utf-42\" is not known");
  expect_complaint(table(good, {"--separator", "and"}), 2, "--separator must be auto, tab or one character");
  write_text(folder_ / "blank.txt", "\n \n\n");
  expect_complaint(train("clm", "bad", {"--data", folder_ / "blank.txt"}), 3, "blank.txt holds no text");
  for (const char* rate : {"0", "1"}) {
    expect_complaint(train("mlm", "bad", {"--set", std::string("task.mask_rate=") + rate}), 2,
                     "task.mask_rate must be above 0 and below 1");
  }
  write_text(folder_ / "squad.json", "{\"data\": 3}");
  expect_complaint(train("squad", "bad", {"--data", folder_ / "squad.json"}), 3, "squad.json");
  expect_complaint(train("mlm", "bad", {"--model", "gpt-tiny"}), 2, "does not learn the task mlm");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad"));
}

TEST_F(Starts, DivergenceAtTheLastStepExitsWithFive) {
  for (const char* task : {"squad", "idx"}) {
    expect_complaint(
        train(task, "bad",
              {"--strategy", "single", "--steps", "1", "--lr", "1e30", "--warmup", "0", "--clip", "0"}),
        5, "is not a number");
  }
}

}  // namespace
}  // namespace syncopate::test
