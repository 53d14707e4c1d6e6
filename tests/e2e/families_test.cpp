// Every family through the program: train with two workers, score again alone, predict.
#include <set>

#include "tests/e2e/program.h"
#include "tests/support/image_files.h"

namespace syncopate::test {
namespace {

class FamilyCommands : public Program {};

TEST_F(FamilyCommands, EvaluatesTheRowsThatOneFileHeldOut) {
  const std::string file = data_for("csv") + "/train.csv";
  const Json result = trained("csv", "run", {"--data", file, "--strategy", "single"});
  const CommandResult bare = run({"evaluate", "--model", folder_ / "run", "--threads", "1", "--json"});
  ASSERT_EQ(bare.exit_code, 0) << bare.err;
  expect_recorded(Json::parse(bare.out), result);
  EXPECT_EQ(Json::parse(bare.out)["examples"], 6) << "a tenth of the rows";
  const CommandResult whole = run({"evaluate", "--model", folder_ / "run", "--data", file, "--json"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(Json::parse(whole.out)["examples"], 61) << "the columns are the run's all the same";
}

TEST_F(FamilyCommands, ScoreCountsTheRowsThatEvaluateCounts) {
  trained("csv", "run", {"--strategy", "single"});
  const std::string file = folder_ / "holes.csv";
  write_text(file, read_text(data_for("csv") + "/dev.csv") + "\"\",a\n\" \",b\n");
  const CommandResult evaluated = run({"evaluate", "--model", folder_ / "run", "--data", file, "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_NE(evaluated.err.find("2 rows without text were skipped"), std::string::npos) << evaluated.err;
  const std::string answers = folder_ / "answers.jsonl";
  ASSERT_EQ(run({"predict", "--model", folder_ / "run", "--data", file, "--out", answers}).exit_code, 0);
  EXPECT_EQ(read_json_lines(answers).size(), 31u) << "every row is answered";
  const Json score = score_of("csv", file, answers, {"--text", "text", "--label", "label"});
  EXPECT_EQ(score["total"], Json::parse(evaluated.out)["examples"]);
  EXPECT_NEAR(score["accuracy"].get<double>(), Json::parse(evaluated.out)["accuracy"].get<double>(), 1e-12);
}

TEST_F(FamilyCommands, MaskedWords) {
  const Json result = trained("mlm", "run", two_workers());
  EXPECT_EQ(result["workers"], 2);
  EXPECT_GT(result["eval"]["perplexity"], 1);
  // The masks of an evaluation go by the run's seed.
  const Json score = evaluated("mlm", "run", "/valid.txt", {"--seed", "5"});
  expect_recorded(score, result);
  EXPECT_NE(evaluated("mlm", "run", "/valid.txt", {"--seed", "6"})["perplexity"], score["perplexity"]);

  const CommandResult filled = run({"predict", "--task", "mlm", "--model", folder_ / "run", "--best", "3",
                                    "--prompt", "the [MASK] cat sleeps near the [MASK]"});
  ASSERT_EQ(filled.exit_code, 0) << filled.err;
  const Json answer = Json::parse(filled.out);
  EXPECT_EQ(answer["text"], "the [MASK] cat sleeps near the [MASK]");
  ASSERT_EQ(answer["masks"].size(), 2u);
  for (const Json& candidates : answer["masks"]) {
    ASSERT_EQ(candidates.size(), 3u);
    EXPECT_GE(candidates[0]["probability"], candidates[1]["probability"]);
    EXPECT_FALSE(candidates[0]["word"].get<std::string>().empty());
  }
  EXPECT_NE(answer["masks"][0], answer["masks"][1]);
  expect_complaint(run({"predict", "--task", "mlm", "--model", folder_ / "run", "--prompt", "the cat"}), 3,
                   "has no [MASK]");
  expect_complaint(run({"predict", "--task", "mlm", "--model", folder_ / "run"}), 2, "needs a text");
  write_text(folder_ / "rows.csv", "number|said\n1|the [MASK] sleeps\n2|\n");
  const CommandResult rows = run({"predict", "--model", folder_ / "run", "--data", folder_ / "rows.csv",
                                  "--text", "said", "--separator", "|"});
  ASSERT_EQ(rows.exit_code, 0) << rows.err;
  EXPECT_EQ(Json::parse(rows.out)["text"], "the [MASK] sleeps");
  expect_complaint(run({"evaluate", "--task", "squad", "--data", data_for("squad") + "/dev.json", "--model",
                        folder_ / "run"}),
                   3, "has no head for questions");
}

TEST_F(FamilyCommands, NextWords) {
  const Json result = trained("clm", "run", two_workers());
  EXPECT_GT(result["eval"]["perplexity"], 1);
  expect_recorded(evaluated("clm", "run", "/valid.txt", {}), result);
  const auto continued = [&](const std::string& seed, const std::string& temperature) {
    const CommandResult answer =
        run({"predict", "--task", "clm", "--model", folder_ / "run", "--prompt", "the red cat", "--prompt",
             "a", "--tokens", "12", "--seed", seed, "--temperature", temperature});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(Json::parse(answer.out.substr(0, answer.out.find('\n')))["text"], "the red cat");
    return answer.out;
  };
  const std::string first = continued("1", "1");
  EXPECT_EQ(continued("1", "1"), first);
  EXPECT_NE(continued("2", "1"), first);
  EXPECT_EQ(continued("2", "0"), continued("1", "0")) << "the likeliest word needs no luck";
}

TEST_F(FamilyCommands, Questions) {
  const Json result = trained("squad", "run", two_workers_and({"--steps", "60"}));
  expect_recorded(evaluated("squad", "run", "/dev.json", {"--stride", "8"}), result);
  const std::string dev = data_for("squad") + "/dev.json";
  const Json score = scored("squad", "run", "/dev.json", {}, {"--stride", "8"});
  for (const char* measure : {"exact_match", "f1"})
    EXPECT_NEAR(score[measure].get<double>(), result["eval"][measure].get<double>(), 1e-9) << measure;
  const Json paragraphs = Json::parse(read_text(dev)).at("data").at(0).at("paragraphs");
  const Json answers = Json::parse(read_text(folder_ / "run.answers"));
  size_t questions = 0, exact = 0;
  for (const Json& paragraph : paragraphs) {
    for (const Json& question : paragraph["qas"]) {
      ++questions;
      const auto answer = answers.at(question["id"].get<std::string>()).get<std::string>();
      EXPECT_NE(paragraph["context"].get<std::string>().find(answer), std::string::npos) << answer;
      std::string gold = question["answers"][0]["text"];
      if (gold.starts_with("the ")) gold = gold.substr(4);  // articles do not count, nor stops
      std::string given = answer;
      if (given.starts_with("the ") || given.starts_with("The ")) given = given.substr(4);
      if (given.ends_with(".")) given.pop_back();
      exact += given == gold ? 1 : 0;
    }
  }
  EXPECT_EQ(answers.size(), questions);
  EXPECT_NEAR(result["eval"]["exact_match"].get<double>(),
              100.0 * static_cast<double>(exact) / static_cast<double>(questions), 1e-9);
  EXPECT_EQ(result["eval"]["examples"], questions);
  // One answer less counts as wrong; the right ones give all.
  Json fewer = answers, gold;
  fewer.erase(fewer.begin());
  write_text(folder_ / "fewer", fewer.dump());
  EXPECT_EQ(score_of("squad", dev, folder_ / "fewer", {})["missing"], 1);
  for (const Json& paragraph : paragraphs) {
    for (const Json& question : paragraph["qas"])
      gold[question["id"].get<std::string>()] = question["answers"][0]["text"];
  }
  write_text(folder_ / "gold", gold.dump());
  EXPECT_EQ(score_of("squad", dev, folder_ / "gold", {})["exact_match"], 100);
  EXPECT_LT(score["exact_match"], 100) << "a foil of what is all right";
  write_text(folder_ / "torn", "{\"a\": ");
  expect_complaint(run({"score", "--task", "squad", "--data", dev, "--predictions", folder_ / "torn"}), 3,
                   "torn");
}

TEST_F(FamilyCommands, QuestionsAboutWordNet) {
  if (!std::filesystem::exists("/usr/share/wordnet/data.noun")) GTEST_SKIP() << "needs WordNet";
  const CommandResult result = run({"train",
                                    "--task",
                                    "definition-qa",
                                    "--limit",
                                    "12",
                                    "--set",
                                    "task.test_limit=5",
                                    "--steps",
                                    "2",
                                    "--global-batch",
                                    "4",
                                    "--max-length",
                                    "96",
                                    "--set",
                                    "task.stride=16",
                                    "--set",
                                    "model.vocab_size=500",
                                    "--threads",
                                    "1",
                                    "--strategy",
                                    "ddp",
                                    "--workers",
                                    "2",
                                    "--out",
                                    folder_ / "run"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json record = Json::parse(read_text(folder_ / "run/result.json"));
  EXPECT_EQ(record["eval"]["examples"], 5);
  EXPECT_TRUE(record["eval"].contains("f1"));
}

TEST_F(FamilyCommands, ImagesWithSyncBatchNorm) {
  const Words settings{"--set", "model.batch_norm=sync", "--optimizer", "sgd", "--lr", "0.05"};
  Words alone = settings;
  alone.insert(alone.end(), {"--strategy", "single"});
  const Json one = trained("idx", "one", alone);
  const Json result = trained("idx", "two", two_workers_and(settings));
  const auto losses = losses_of(folder_ / "one"), shared = losses_of(folder_ / "two");
  ASSERT_EQ(losses.size(), shared.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], shared[i], 1e-4 * losses[i]);
  trained("idx", "local", two_workers_and({"--optimizer", "sgd", "--lr", "0.05"}));
  const auto local = losses_of(folder_ / "local");
  double apart = 0;
  for (size_t i = 0; i < losses.size(); ++i)
    apart = std::max(apart, std::abs(local[i] - losses[i]) / losses[i]);
  EXPECT_GT(apart, 2e-3) << "each worker by its own statistics is another run";

  expect_recorded(evaluated("idx", "two", "", {}), result);
  const Json score = scored("idx", "two", "", {}, {"--best", "2"});
  for (const char* measure : {"accuracy", "macro_f1"})
    EXPECT_NEAR(score[measure].get<double>(), result["eval"][measure].get<double>(), 1e-9) << measure;
  const std::string labels = read_text(folder_ / "idx/t10k-labels-idx1-ubyte").substr(8);
  size_t count = 0;
  double right = 0;
  for (const Json& answer : read_json_lines(folder_ / "two.answers")) {
    EXPECT_EQ(answer["index"], count);
    ASSERT_EQ(answer["best"].size(), 2u);
    right += answer["label"] == std::to_string(static_cast<int>(labels[count++])) ? 1 : 0;
  }
  ASSERT_EQ(count, 23u);
  EXPECT_NEAR(right / 23, result["eval"]["accuracy"].get<double>(), 1e-9);
}

TEST_F(FamilyCommands, Tables) {
  const Json result = trained("csv", "run", two_workers_and({"--steps", "40"}));
  EXPECT_GT(result["eval"]["accuracy"], 0.5);
  expect_recorded(evaluated("csv", "run", "/dev.csv", {"--text", "text", "--label", "label"}), result);
  const Json score = scored("csv", "run", "/dev.csv", {"--text", "text", "--label", "label"}, {});
  for (const char* measure : {"accuracy", "macro_f1"})
    EXPECT_NEAR(score[measure].get<double>(), result["eval"][measure].get<double>(), 1e-9) << measure;
  // To predict, no labels are needed.
  write_text(folder_ / "new.csv", "text\n\"red, the cat\"\n\"green, the dog\"\n");
  const CommandResult answered =
      run({"predict", "--task", "csv", "--data", folder_ / "new.csv", "--text", "text", "--model",
           folder_ / "run", "--out", folder_ / "answers", "--json"});
  ASSERT_EQ(answered.exit_code, 0) << answered.err;
  EXPECT_EQ(answered.out, read_text(folder_ / "answers"));
  const auto lines = read_json_lines(folder_ / "answers");
  ASSERT_EQ(lines.size(), 2u);
  const std::set<std::string> labels{"house", "garden", "river"};
  for (const Json& line : lines) EXPECT_TRUE(labels.contains(line["label"].get<std::string>())) << line;
  // A table as a spreadsheet saves it: semicolons, not UTF-8.
  write_text(folder_ / "other.csv.gz", gzipped("label;text\nhouse;\"the caf\xE9; red\"\nriver;the dog\n"));
  const auto evaluate = [&](const std::string& encoding) {
    return run({"evaluate", "--task", "csv", "--data", folder_ / "other.csv.gz", "--text", "text", "--label",
                "label", "--model", folder_ / "run", "--encoding", encoding});
  };
  EXPECT_EQ(evaluate("latin-1").exit_code, 0) << evaluate("latin-1").err;
  EXPECT_NE(evaluate("replace").err.find("note: " + (folder_ / "other.csv.gz").string() +
                                         ": 1 byte that is not UTF-8 was replaced"),
            std::string::npos);
  expect_complaint(evaluate("utf-8"), 3, "other.csv.gz:2: byte 25 of the file (0xe9) is not UTF-8");
}

}  // namespace
}  // namespace syncopate::test
