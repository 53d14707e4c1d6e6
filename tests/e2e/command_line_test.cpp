// The program as a person uses it: what it leaves, what it says when something is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "tests/support/rounding.h"
#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

/// The same lines of JSON, to the last bit where batches of another size are rounded alike.
void expect_same_answers(const std::string& found, const std::string& right) {
  if (!products_round_by_rows()) {
    EXPECT_EQ(found, right);
    return;
  }
  std::istringstream mine(found), theirs(right);
  std::string line, other;
  while (std::getline(mine, line) && std::getline(theirs, other)) {
    const Json one = Json::parse(line).flatten(), two = Json::parse(other).flatten();
    ASSERT_EQ(one.size(), two.size());
    for (const auto& [key, value] : one.items()) {
      if (value.is_number_float()) {
        EXPECT_NEAR(value.get<double>(), two.at(key).get<double>(), 1e-6) << key;
      } else {
        EXPECT_EQ(value, two.at(key)) << key;
      }
    }
  }
  EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), std::count(right.begin(), right.end(), '\n'));
}

class CommandLine : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }

  CommandResult run(Words words) {
    words.insert(words.begin(), program().string());
    return run_command(words);
  }
  CommandResult train(const std::string& name, const Words& more) {
    return run_command(train_command(data_, folder_ / name, more));
  }
  /// The complaint of a run that must fail with `code`, in one sentence.
  std::string complaint(const CommandResult& result, int code) {
    EXPECT_EQ(result.exit_code, code) << result.err;
    const size_t start = result.err.find("syncopate: ");
    if (start == std::string::npos) return "nothing was said: " + result.err;
    const std::string sentence = result.err.substr(start);
    EXPECT_EQ(sentence.find('\n'), sentence.size() - 1) << sentence;
    return sentence;
  }
  void expect_complaint(const CommandResult& result, int code, const std::string& part) {
    const std::string said = complaint(result, code);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }

  TempDir folder_;
  std::string data_;
};

TEST_F(CommandLine, TrainLeavesRecordsAndAUsableModel) {
  const CommandResult result =
      train("run", {"--strategy", "ddp", "--workers", "2", "--epochs", "12", "--json", "--accumulate", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto run_dir = folder_ / "run";
  for (const char* name :
       {"spec.json", "env.json", "steps.jsonl", "evals.jsonl", "loss_0.txt", "loss_1.txt", "result.json",
        "rank1.log", "model/config.json", "model/model.safetensors", "model/vocab.txt", "DONE"}) {
    EXPECT_TRUE(std::filesystem::exists(run_dir / name)) << name;
  }
  const size_t last_line = result.out.rfind('\n', result.out.size() - 2);
  const Json printed = Json::parse(result.out.substr(last_line == std::string::npos ? 0 : last_line + 1));
  EXPECT_EQ(printed, Json::parse(read_text(run_dir / "result.json")));
  for (const char* key : {"task", "model", "strategy", "workers", "steps", "examples", "ms_per_iteration",
                          "compute_ms", "exchange_ms", "examples_per_s", "bytes_sent_per_step", "train_loss",
                          "train_seconds", "epochs", "eval", "run_dir"}) {
    EXPECT_TRUE(printed.contains(key)) << key;
  }
  EXPECT_EQ(printed["steps"],
            84);  // 64 examples, ten a step: six whole batches and one of four, twelve times
  EXPECT_EQ(printed["examples"], 64 * 12);
  EXPECT_EQ(printed["epochs"].size(), 12u);
  EXPECT_GT(printed["eval"]["accuracy"], 0.9) << "the task is easy";
  const auto steps = read_json_lines(run_dir / "steps.jsonl");
  ASSERT_EQ(steps.size(), 84u);
  EXPECT_EQ(steps[0]["step"], 1);
  EXPECT_EQ(steps[6]["examples"], 4);
  for (const char* key : {"loss", "lr", "ms", "compute_ms", "exchange_ms", "bytes_sent"}) {
    EXPECT_TRUE(steps[0].contains(key)) << key;
  }

  for (const char* part :
       {"step 84/84", "done: 84 steps", "quality: test loss", "accuracy", "ms per step (compute", "exchange",
        "data", "examples/s", "sent: ", "by each worker"}) {
    EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  }
  EXPECT_NE(result.err.find("model: " + (run_dir / "model").string() + "\n"), std::string::npos);
  EXPECT_TRUE(result.err.ends_with("evaluate: syncopate evaluate --model " + run_dir.string() + "\n"))
      << result.err;

  const std::string dev = data_ + "/dev.tsv", model = run_dir / "model";
  const CommandResult bare = run({"evaluate", "--model", run_dir, "--json"});
  ASSERT_EQ(bare.exit_code, 0) << bare.err;
  EXPECT_EQ(Json::parse(bare.out)["accuracy"], printed["eval"]["accuracy"]);
  EXPECT_EQ(Json::parse(bare.out)["examples"], 20);
  const CommandResult score = run({"evaluate", "--task", "sst2", "--data", dev, "--model", model, "--json"});
  ASSERT_EQ(score.exit_code, 0) << score.err;
  EXPECT_EQ(Json::parse(score.out)["accuracy"], printed["eval"]["accuracy"]);
  EXPECT_NEAR(Json::parse(score.out)["loss"].get<double>(), printed["eval"]["loss"].get<double>(), 1e-6);

  const CommandResult answers =
      run({"predict", "--task", "sst2", "--data", dev, "--model", model, "--out", folder_ / "answers.jsonl"});
  ASSERT_EQ(answers.exit_code, 0) << answers.err;
  const auto lines = read_json_lines(folder_ / "answers.jsonl");
  ASSERT_EQ(lines.size(), 20u);
  int right = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["index"], i);
    ASSERT_EQ(lines[i]["logits"].size(), 2u);
    const bool one = lines[i]["logits"][1] > lines[i]["logits"][0];
    EXPECT_EQ(lines[i]["label"], one ? "1" : "0");
    right += one == (i % 2 == 0) ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(right / 20.0, printed["eval"]["accuracy"].get<double>());
}

TEST_F(CommandLine, ConfigRunsARecordedSpecAgain) {
  ASSERT_EQ(train("first", {"--strategy", "single", "--steps", "6"}).exit_code, 0);
  const auto again = [&](const std::string& name, Words more) {
    more.insert(more.begin(), {"train", "--config", folder_ / "first", "--out", folder_ / name});
    const CommandResult result = run(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return losses_of(folder_ / name);
  };
  const auto first = losses_of(folder_ / "first");
  EXPECT_EQ(again("same", {}), first);
  EXPECT_NE(again("other", {"--seed", "6"}), first);
  EXPECT_EQ(again("longer", {"--epochs", "1"}).size(), 7u) << "what is given holds, not --steps of the file";
  expect_complaint(run({"train", "--config", data_ + "/dev.tsv"}), 3, "give a spec.json");
  expect_complaint(run({"train", "--config", folder_ / "first", "--set", "strategy.every=8"}), 2,
                   "strategy.every has no effect with single: it is a setting of local-sgd, diloco");
}

TEST_F(CommandLine, PromptsAreClassified) {
  ASSERT_EQ(train("run", {"--strategy", "single", "--epochs", "8"}).exit_code, 0);
  const std::string text = read_text(data_ + "/dev.tsv");  // its first row is of class 1
  const size_t start = text.find('\n') + 1;
  const std::string prompt = text.substr(start, text.find('\t', start) - start);
  const CommandResult all = run({"predict", "--model", folder_ / "run"});
  const CommandResult one = run({"predict", "--model", folder_ / "run/model", "--prompt", prompt});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const Json answer = Json::parse(one.out), row = Json::parse(all.out.substr(0, all.out.find('\n')));
  EXPECT_EQ(answer["text"], prompt);
  EXPECT_EQ(answer["label"], row["label"]);
  EXPECT_NEAR(answer["logits"][0].get<double>(), row["logits"][0].get<double>(), 1e-5);
  ASSERT_EQ(answer["probabilities"].size(), 2u);
  const double p0 = answer["probabilities"][0], p1 = answer["probabilities"][1];
  EXPECT_NEAR(p0 + p1, 1, 1e-6);
  EXPECT_NEAR(std::log(p1 / p0), answer["logits"][1].get<double>() - answer["logits"][0].get<double>(), 1e-3);
  expect_complaint(run({"predict", "--model", folder_ / "run", "--prompt", prompt, "--prompt-pair", "more"}),
                   2, "sst2 reads single texts");
  expect_complaint(run({"predict", "--model", data_, "--prompt", prompt}), 2, "give --task");
}

TEST_F(CommandLine, RunPreparesItsOwnProcess) {
  // The other tests run in an environment that is prepared already: see tests/support/prepared_main.cpp.
  const Words bare{"env", "-u", "SYNCOPATE_PREPARED", "-u", "OPENBLAS_CORETYPE", "-u", "OMP_WAIT_POLICY"};
  const auto environment_of = [&](const std::string& name, Words words) {
    const Words command = train_command(data_, folder_ / name, {"--strategy", "single", "--steps", "5"});
    words.insert(words.end(), command.begin(), command.end());
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json found = Json::parse(read_text(folder_ / name / "env.json"));
    EXPECT_EQ(found.at("provenance").at("seed"), 5);
    found.erase("provenance");  // holds the folder and the time
    return found;
  };
  const Json prepared = environment_of("prepared", {});
  EXPECT_EQ(environment_of("bare", bare), prepared);
  EXPECT_EQ(losses_of(folder_ / "bare"), losses_of(folder_ / "prepared"));
#if defined(__x86_64__)
  if (!prepared.at("blas").get<std::string>().starts_with("OpenBLAS") || !__builtin_cpu_supports("avx"))
    return;
  // Kernels of twenty years ago are what an old OpenBLAS takes for a CPU it does not know.
  Words old = bare;
  old.push_back("OPENBLAS_CORETYPE=Prescott");
  EXPECT_NE(environment_of("old", old).at("core_type"), "Prescott");
  EXPECT_EQ(environment_of("kept", {"env", "OPENBLAS_CORETYPE=Prescott"}).at("core_type"), "Prescott")
      << "the foil: what is prepared is left alone";
#endif
}

TEST_F(CommandLine, TrainsFromAModelFolder) {
  ASSERT_EQ(train("first", {"--strategy", "single", "--epochs", "8"}).exit_code, 0);
  const CommandResult again = train("second", {"--strategy", "single", "--steps", "1", "--model",
                                               folder_ / "first/model", "--lr", "0", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json before = Json::parse(read_text(folder_ / "first/result.json"));
  EXPECT_EQ(Json::parse(again.out)["eval"]["accuracy"], before["eval"]["accuracy"]);
  EXPECT_EQ(read_text(folder_ / "first/model/model.safetensors"),
            read_text(folder_ / "second/model/model.safetensors"));
}

TEST_F(CommandLine, ResumingAFinishedRunPrintsTheSameResult) {
  const Words settings{"--strategy", "all-reduce", "--workers", "2", "--steps", "9", "--json"};
  const CommandResult first = train("run", settings);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  Words again = settings;
  again.push_back("--resume");
  const CommandResult second = train("run", again);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(complaint(train("run", settings), 2).find("syncopate: "), 0u) << "a run is not overwritten";
}

TEST_F(CommandLine, TracesAPipelineAndRecordsItsStages) {
  const auto file = folder_ / "trace.json";
  const CommandResult result = train("run", {"--strategy", "single", "--stages", "2", "--workers", "2",
                                             "--steps", "5", "--trace", file, "--trace-steps", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("stages: of 0 to 1, stage "), std::string::npos) << result.err;
  const Json record = Json::parse(read_text(folder_ / "run/result.json"));
  EXPECT_EQ(record["pipeline"]["cut"], "1,1");
  ASSERT_EQ(record["stages"].size(), 2u);
  const Json &first = record["stages"][0], &last = record["stages"][1];
  EXPECT_EQ(last["ranks"], Json::array({1}));
  EXPECT_GT(first["forward_ms"], 0);
  EXPECT_TRUE(first["bytes_forward"] > 0 && first["bytes_backward"] == 0 && last["bytes_backward"] > 0);
  EXPECT_TRUE(first["bits_forward"] == 32 && last["bits_forward"].is_null());
  double parts = 0;
  for (const char* part :
       {"forward_ms", "backward_ms", "coding_ms", "waiting_forward_ms", "waiting_backward_ms", "sending_ms",
        "exchange_ms", "optimizer_ms", "data_ms", "other_ms"})
    parts += first[part].get<double>();
  EXPECT_NEAR(parts, first["ms"], 0.05 * first["ms"].get<double>());
  const Json trace = Json::parse(read_text(file));
  std::set<std::string> processes, names;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"].get<std::string>());
    if (event["ph"] == "X") names.insert(event["name"].get<std::string>());
  }
  EXPECT_EQ(processes, (std::set<std::string>{"rank 0: stage 0, replica 0", "rank 1: stage 1, replica 0"}));
  for (const char* name :
       {"step 3", "forward 0", "backward 3", "update", "send 1 to rank 1", "receive 2 from rank 1"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_FALSE(names.contains("step 4")) << "one step was asked for";
  const CommandResult killed =
      train("killed", {"--strategy", "ddp", "--workers", "2", "--steps", "6", "--trace",
                       folder_ / "killed.json", "--set", "comm.fault=1:6:backward:kill"});
  EXPECT_EQ(killed.exit_code, 4) << killed.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "killed.json"));
  expect_complaint(train("other", {"--trace", folder_ / "none/trace.json"}), 2, "make it first");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other"));
}

TEST_F(CommandLine, StagesInProcessesOfTheirOwnAreOneWorker) {
  const auto model_of = [&](const std::string& name, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--strategy", "single", "--steps", "6", "--clip", "0", "--global-batch", "8"});
    const CommandResult result = train(name, flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_text(folder_ / name / "model/model.safetensors");
  };
  const std::vector<std::string> staged{"--workers", "2",     "--stages",
                                        "2",         "--set", "pipeline.micro_batches=4"};
  const std::string whole = model_of("whole", {"--workers", "1", "--accumulate", "4"});
  EXPECT_TRUE(model_of("staged", staged) == whole);
  EXPECT_EQ(Json::parse(read_text(folder_ / "staged/env.json"))["cut"], "1,1")
      << "a run that resumes needs it";
  std::vector<std::string> coded = staged;
  coded.insert(coded.end(), {"--activation-codec", "direct"});
  EXPECT_FALSE(model_of("coded", coded) == whole);
}

TEST_F(CommandLine, StagesScoreAndAnswerAsAWholeModelDoes) {
  ASSERT_EQ(train("run", {"--strategy", "single", "--workers", "1", "--steps", "4"}).exit_code, 0);
  ASSERT_EQ(train("other", {"--strategy", "single", "--workers", "1", "--steps", "9"}).exit_code, 0);
  const auto say = [&](const std::string& command, const std::string& name, const Words& more) {
    Words words{program(), command, "--model", folder_ / name};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const auto score = [&](const std::string& name, const std::string& stages) {
    Json json = Json::parse(say("evaluate", name, {"--json", "--stages", stages}));
    json.erase("seconds");
    return json.dump();
  };
  expect_same_answers(score("run", "2"), score("run", "1"));
  EXPECT_NE(score("run", "2"), score("other", "2"));
  expect_same_answers(say("predict", "run", {"--stages", "2"}), say("predict", "run", {}));
  EXPECT_NE(say("predict", "run", {"--stages", "2"}), say("predict", "other", {}));
  const auto refused = [&](const Words& more) {
    Words words{program(), "evaluate", "--model", folder_ / "run"};
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
  };
  expect_complaint(refused({"--stages", "9"}), 2, "block");
  expect_complaint(refused({"--stages", "0"}), 2, "--stages must be 1 or more");
  expect_complaint(refused({"--stages", "2", "--network", "two-sites"}), 2,
                   "leave --stages or --network out");
}

TEST_F(CommandLine, DivergenceExitsWithFive) {
  for (const char* workers : {"1", "2"}) {
    const CommandResult result =
        train(std::string("run") + workers, {"--strategy", "ddp", "--workers", workers, "--steps", "40",
                                             "--lr", "1e30", "--warmup", "0", "--clip", "0"});
    expect_complaint(
        result, 5,
        "is not a number; try a smaller learning rate, a longer warm-up or clipping (--lr, --warmup, "
        "--clip)");
  }
}

TEST_F(CommandLine, TrainingMatchesTransformers) {
  SYNCOPATE_NEED_SHARED(oracle, "oracles/tiny-bert-cls");
  const Json trace = Json::parse(read_text(oracle / "trace.json"));
  std::string rows = "index\tsentence1\tsentence2\tlabel\n";
  for (const Json& row : trace["rows"]) {
    rows += "0\t" + row[0].get<std::string>() + "\t" + row[1].get<std::string>() + "\t" +
            (row[2] == 0 ? "entailment" : "not_entailment") + "\n";
  }
  std::filesystem::create_directories(folder_ / "rte");
  for (const char* name : {"train.tsv", "dev.tsv"}) write_text(folder_ / "rte" / name, rows);
  const auto furthest = [&](const std::string& name, const Words& more) {
    Words words{"--task",
                "rte",
                "--data",
                folder_ / "rte",
                "--model",
                oracle,
                "--no-shuffle",
                "--global-batch",
                "8",
                "--steps",
                "10",
                "--weight-decay",
                "0.1",
                "--schedule",
                "constant",
                "--warmup",
                "0",
                "--clip",
                "0",
                "--max-length",
                "128"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = train(name, words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    double worst = 0;
    const std::vector<double> losses = losses_of(folder_ / name);
    EXPECT_EQ(losses.size(), 10u);
    for (size_t i = 0; i < losses.size(); ++i) {
      const double expected = trace["losses"][i];
      worst = std::max(worst, std::abs(losses[i] - expected) / expected);
    }
    return worst;
  };
  EXPECT_LT(furthest("one", {"--strategy", "single"}), 5e-6);
  EXPECT_LT(furthest("two", {"--strategy", "ddp", "--workers", "2"}), 5e-6);
  EXPECT_GT(furthest("foil", {"--strategy", "single", "--weight-decay", "0"}), 5e-6);
}

TEST_F(CommandLine, TokenizePrintsIdsTypesAndTokens) {
  write_text(folder_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n,\n");
  write_text(folder_ / "texts", "Hello, worlds\n\n");
  const CommandResult plain = run({"tokenize", "--vocab", folder_ / "vocab.txt", folder_ / "texts"});
  EXPECT_EQ(plain.out,
            "{\"ids\":[2,5,8,6,7,3],\"types\":[0,0,0,0,0,0],\"tokens\":[\"[CLS]\",\"hello\",\",\",\"world\","
            "\"##s\",\"[SEP]\"]}\n"
            "{\"ids\":[2,3],\"types\":[0,0],\"tokens\":[\"[CLS]\",\"[SEP]\"]}\n");
  write_text(folder_ / "pairs", "{\"a\":\"hello hello\",\"b\":\"world\"}\n{\"text\":\"hello\"}\n");
  const CommandResult pairs =
      run({"tokenize", "--vocab", folder_ / "vocab.txt", "--jsonl", "--max-length", "5", folder_ / "pairs"});
  EXPECT_EQ(pairs.out,
            "{\"ids\":[2,5,3,6,3],\"types\":[0,0,0,1,1],\"tokens\":[\"[CLS]\",\"hello\",\"[SEP]\",\"world\","
            "\"[SEP]\"]}\n"
            "{\"ids\":[2,5,3],\"types\":[0,0,0],\"tokens\":[\"[CLS]\",\"hello\",\"[SEP]\"]}\n");
  const CommandResult bare =
      run({"tokenize", "--vocab", folder_ / "vocab.txt", "--no-special", folder_ / "texts"});
  EXPECT_EQ(bare.out.substr(0, 17), "{\"ids\":[5,8,6,7],");
}

TEST_F(CommandLine, CompareRunsRowsAndSkipsFinishedOnes) {
  write_text(folder_ / "x.toml",
             "title = \"two ways\"\n[settings]\ntask = \"sst2\"\ndata = \"" + data_ +
                 "\"\nglobal_batch = 8\nmax_length = 16\nepochs = 2\nthreads = 1\n"
                 "[[row]]\nstrategy = \"single\"\n[[row]]\nstrategy = \"all-reduce\"\nworkers = 2\n");
  const CommandResult first = run({"compare", folder_ / "x.toml", "--out", folder_ / "runs"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  for (const char* word : {"accuracy", "comp+exch", "speed", "single", "all-reduce", "1.00x"}) {
    EXPECT_NE(first.out.find(word), std::string::npos) << first.out;
  }
  EXPECT_EQ(Json::parse(read_text(folder_ / "runs/results.json"))["arms"].size(), 2u);
  for (const char* file : {"results.csv", "results.md", "results.xlsx", "report.html"})
    EXPECT_GT(std::filesystem::file_size(folder_ / "runs" / file), 100u) << file;
  const CommandResult again = run({"compare", folder_ / "x.toml", "--out", folder_ / "runs"});
  EXPECT_EQ(again.out, first.out);
  EXPECT_NE(again.err.find("done before"), std::string::npos) << again.err;
}

TEST_F(CommandLine, CompareGoesOnPastARunThatIsLostAndRepeatsIt) {
  const std::string settings =
      "[settings]\ntask = \"sst2\"\ndata = \"{words}\"\nglobal_batch = 8\nmax_length = 16\n"
      "steps = 4\nthreads = 1\nworkers = 2\n";
  const std::string rows =
      "[[row]]\nname = \"lost\"\nstrategy = \"ddp\"\ncomm.fault = \"1:2:forward:kill\"\n"
      "[[row]]\nname = \"fine\"\nstrategy = \"single\"\n";
  write_text(folder_ / "x.toml", "[data]\nwords = \"\"\n" + settings + rows);
  const Words compare{"compare", folder_ / "x.toml", "--out", folder_ / "runs"};
  expect_complaint(run(compare), 3, "say where it is with --data words=PATH");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs")) << "nothing ran";
  Words words = compare;
  words.insert(words.end(), {"--data", "words=" + data_, "--set", "seed=3"});
  Words dry = words;
  dry.push_back("--dry-run");
  const CommandResult listed = run(dry);
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_NE(listed.out.find("2 runs, 0 done"), std::string::npos) << listed.out;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs")) << "it leaves nothing behind";
  const CommandResult first = run(words);
  EXPECT_EQ(first.exit_code, 4) << first.err;
  EXPECT_NE(first.out.find("fine"), std::string::npos) << first.out;
  const Json sweep = Json::parse(read_text(folder_ / "runs/sweep.json"));
  EXPECT_EQ(sweep["state"], "finished");
  for (const Json& each : sweep["runs"]) {
    EXPECT_EQ(each["state"], each["row"] == "lost" ? "failed" : "done") << each;
    if (each["row"] != "lost") continue;
    EXPECT_NE(each["message"].get<std::string>().find("rank 1 was killed"), std::string::npos) << each;
  }
  const CommandResult again = run(words);
  EXPECT_EQ(again.exit_code, 4) << again.err;
  EXPECT_EQ(again.out, first.out) << "what is done is not repeated";
}

TEST_F(CommandLine, PrintsHelpAndVersion) {
  EXPECT_EQ(run({"--version"}).out.substr(0, 10), "syncopate ");
  for (const char* command : {"train", "evaluate", "predict", "tokenize", "compare"}) {
    const CommandResult help = run({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find("Example"), std::string::npos) << command;
  }
  EXPECT_EQ(run({"help", "compare"}).out, run({"compare", "--help"}).out);
  expect_complaint(run({"help", "trian"}), 2, "did you mean \"train\"?");
}

TEST_F(CommandLine, BadSettingsExitWithTwo) {
  expect_complaint(run({"trian"}), 2, "did you mean \"train\"?");
  expect_complaint(train("a", {"--stratgy", "ddp"}), 2, "unknown option --stratgy; did you mean --strategy?");
  expect_complaint(train("a", {"--strategy", "dpd"}), 2, "unknown strategy \"dpd\"; did you mean \"ddp\"?");
  expect_complaint(train("a", {"--workers", "0"}), 2, "--workers must be 1 or more, got 0");
  expect_complaint(train("a", {"--workers", "100000"}), 2, "too many for this machine");
  expect_complaint(train("a", {"--accumulate", "9223372036854775807"}), 2, "--accumulate");
  expect_complaint(train("a", {"--strategy", "diloco", "--set", "strategy.outer_lr=1e300"}), 2,
                   "strategy.outer_lr must be above 0 and at most 1000000");
  expect_complaint(train("a", {"--set", "comm.fault=9:2:forward:kill"}), 2, "does not exist");
  expect_complaint(train("a", {"--set", "comm.fault=0:2:foreward:kill"}), 2, "names no phase of a run");
  expect_complaint(train("a", {"--workers", "two"}), 2, "--workers must be a whole number, got \"two\"");
  expect_complaint(train("a", {"--strategy", "single", "--workers", "2"}), 2, "one worker");
  expect_complaint(train("a", {"--set", "strategy.bukket_mib=3"}), 2,
                   "did you mean \"strategy.bucket_mib\"?");
  expect_complaint(train("a", {"--optimizer", "adam"}), 2, "unknown optimizer \"adam\"");
  expect_complaint(train("a", {"--model", "bert-tiyn"}), 2, "did you mean \"bert-tiny\"?");
  expect_complaint(train("a", {"--task", "sst3"}), 2, "did you mean \"sst2\"?");
  expect_complaint(train("a", {"--batch-size", "4"}), 2, "exclude each other");
  expect_complaint(train("a", {"--batch-size", "0"}), 2,
                   "--batch-size must be a whole number above 0 or auto");
  expect_complaint(train("a", {"--set", "codec.rank=2"}), 2, "it is a setting of power-sgd");
  expect_complaint(train("a", {"--text", "sentence"}), 2, "--text has no effect with the task sst2");
  expect_complaint(train("a", {"--max-length", "1000"}), 2, "--max-length");
  expect_complaint(train("a", {"--rank", "3", "--world-size", "2", "--master", "127.0.0.1:1"}), 2, "rank");
  expect_complaint(train("a", {"--resume"}), 2, "no run in");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a")) << "a run that never began leaves nothing";
}

TEST_F(CommandLine, BadDataExitsWithThree) {
  const Words workers{"--strategy", "ddp", "--workers", "2"};
  const auto with_data = [&](const std::string& train_text) {
    std::filesystem::create_directories(folder_ / "bad");
    write_text(folder_ / "bad/train.tsv", train_text);
    write_text(folder_ / "bad/dev.tsv", "sentence\tlabel\na\t1\n");
    Words words = workers;
    words.insert(words.end(), {"--data", folder_ / "bad"});
    return train("b", words);
  };
  expect_complaint(train("b", {"--data", folder_ / "nowhere"}), 3, "nowhere");
  expect_complaint(with_data("sentense\tlabel\na\t1\n"), 3, "sentence");
  expect_complaint(with_data("sentence\tlabel\na\t1\nb\n"), 3, "train.tsv:3");
  expect_complaint(with_data("sentence\tlabel\na\tgood\n"), 3, "good");
  expect_complaint(with_data(""), 3, "train.tsv");
  expect_complaint(train("b", {"--vocab", folder_ / "none.txt"}), 3, "none.txt");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b"));
}

TEST_F(CommandLine, BadModelFoldersExitWithThree) {
  ASSERT_EQ(train("good", {"--strategy", "single", "--steps", "1"}).exit_code, 0);
  const std::filesystem::path good = folder_ / "good/model";
  const auto score = [&](const std::filesystem::path& model) {
    return run({"evaluate", "--task", "sst2", "--data", data_ + "/dev.tsv", "--model", model.string()});
  };
  const auto copy = [&](const std::string& name) {
    std::filesystem::copy(good, folder_ / name, std::filesystem::copy_options::recursive);
    return folder_ / name;
  };
  ASSERT_EQ(score(good).exit_code, 0);
  const std::string weights = read_text(good / "model.safetensors");

  const auto cut = copy("cut");
  write_text(cut / "model.safetensors", weights.substr(0, weights.size() - 100));
  expect_complaint(score(cut), 3, "model.safetensors");
  const auto lying = copy("lying");
  write_text(lying / "model.safetensors",
             std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + weights.substr(8));
  expect_complaint(score(lying), 3, "model.safetensors");
  const auto shape = copy("shape");
  std::string config = read_text(shape / "config.json");
  config.replace(config.find("\"intermediate_size\": 512"), 24, "\"intermediate_size\": 256");
  write_text(shape / "config.json", config);
  expect_complaint(score(shape), 3, "shape");
  const auto words = copy("words");
  write_text(words / "vocab.txt", read_text(words / "vocab.txt") + "surplus\n");
  expect_complaint(score(words), 3, "vocabulary");
  const auto bare = copy("bare");
  std::filesystem::remove(bare / "vocab.txt");
  expect_complaint(score(bare), 3, "vocab.txt");
  expect_complaint(score(folder_ / "none"), 3, "none");
  expect_complaint(run({"evaluate", "--task", "rte", "--data", data_ + "/dev.tsv", "--model", good}), 3,
                   "sentence1");
}

TEST_F(CommandLine, FullDiskAtACheckpointLeavesNoPartialFile) {
  if (!namespaces_allowed()) GTEST_SKIP() << "this system allows no namespaces of one's own";
  // A disk of 3 MB in a mount namespace of its own: the records fit, the checkpoint (5 MB) does not.
  const std::string script =
      "mount -t tmpfs -o size=3m none \"$0\" && cd / && \"$@\"; code=$?; ls -a \"$0/run\" | grep -c writing; "
      "exit $code";
  const std::filesystem::path disk = folder_ / "disk";
  std::filesystem::create_directories(disk);
  Words words{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, disk.string()};
  const Words command = train_command(
      data_, disk / "run", {"--strategy", "ddp", "--workers", "2", "--steps", "50", "--save-every", "5"});
  words.insert(words.end(), command.begin(), command.end());
  const CommandResult result = run_command(words);
  expect_complaint(result, 3, "No space left on device");
  EXPECT_EQ(result.out, "0\n") << "no half-written file is left";
}

TEST_F(CommandLine, ReportsUnwritableOutput) {
  write_text(folder_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n");
  write_text(folder_ / "texts", "hello\n");
  const std::string command =
      program().string() + " tokenize --vocab " + (folder_ / "vocab.txt").string() + " ";
  expect_complaint(run_command({"sh", "-c", command + (folder_ / "texts").string() + " > /dev/full"}), 3,
                   "standard output");
  expect_complaint(run_command({"sh", "-c", command + folder_.path().string()}), 3, "cannot read");
}

TEST_F(CommandLine, RestartsARunThatDiedBeforeItsFirstCheckpoint) {
  EXPECT_EQ(
      train("run", {"--strategy", "ddp", "--workers", "2", "--set", "comm.fault=1:3:forward:kill"}).exit_code,
      4);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/steps.jsonl"));
  EXPECT_EQ(train("run", {"--strategy", "ddp", "--workers", "2"}).exit_code, 0);
  EXPECT_EQ(losses_of(folder_ / "run").size(), 7u);
}

/// What a step costs, by hand: two workers at once on two cores.
std::string small_profile(const TempDir& folder) {
  const Json profile{
      {"format", "syncopate-profile-1"},
      {"task", "rte"},
      {"model", "bert-tiny"},
      {"optimizer", "adamw"},
      {"max_length", 64},
      {"workers", 2},
      {"threads", 1},
      {"cores", 2},
      {"training_examples", 320},
      {"times",
       {{{"batch", 8}, {"forward_s", 0.01}, {"backward_s", 0.02}, {"update_s", 0.002}, {"data_s", 0.001}},
        {{"batch", 32}, {"forward_s", 0.04}, {"backward_s", 0.08}, {"update_s", 0.002}, {"data_s", 0.001}}}},
      {"parameters", {{{"name", "a"}, {"shape", {512, 512}}}, {{"name", "b"}, {"shape", {256, 256}}}}},
      {"codecs", Json::array({{{"name", "int8"}, {"encode_s", 1e-9}, {"decode_s", 1e-9}}})}};
  const auto file = folder / "profile.json";
  write_text(file, profile.dump());
  return file;
}

TEST_F(CommandLine, SimulatesFromAProfile) {
  const std::string profile = small_profile(folder_);
  const auto simulate = [&](const std::string& name, Words more) {
    more.insert(more.begin(), {"simulate", "--network", "two-sites", "--profile", profile, "--global-batch",
                               "32", "--out", folder_ / name});
    return run(more);
  };
  const auto result = [&](const std::string& name) {
    return Json::parse(read_text(folder_ / name / "result.json"));
  };
  const CommandResult ddp = simulate("ddp", {"--workers", "4", "--steps", "5"});
  ASSERT_EQ(ddp.exit_code, 0) << ddp.err;
  EXPECT_NE(ddp.err.find("as the profile was measured: --task rte"), std::string::npos) << ddp.err;
  EXPECT_NE(ddp.err.find("0.5 times as long"), std::string::npos) << ddp.err;
  const Json made = result("ddp");
  EXPECT_EQ(made["task"], "rte");
  EXPECT_EQ(made["steps"], 5);
  EXPECT_EQ(read_json_lines(folder_ / "ddp/steps.jsonl").size(), 5u);
  EXPECT_TRUE(made["simulated"].get<bool>());
  EXPECT_NEAR(made["compute_ms"].get<double>(), 16, 0.5);
  EXPECT_GT(made["exchange_ms"].get<double>(), 10);

  ASSERT_EQ(simulate("free", {"--workers", "4", "--strategy", "parameter-server"}).exit_code, 0);
  const Json free = result("free");
  EXPECT_EQ(free["steps"], 40);  // an epoch, by updates
  EXPECT_NEAR(free["examples"].get<double>() / free["train_seconds"].get<double>(),
              free["examples_per_s"].get<double>(), 1e-3 * free["examples_per_s"].get<double>());

  expect_complaint(simulate("no", {"--workers", "4", "--task", "sst2"}), 2, "--task rte, and --task sst2");
  expect_complaint(simulate("no", {"--workers", "4", "--max-length", "512"}), 2, "--max-length 64");
  expect_complaint(
      simulate("no", {"--workers", "2", "--strategy", "parameter-server", "--set", "strategy.staleness=2"}),
      2, "a bound of 2 on staleness");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "no"));
}

TEST_F(CommandLine, AdvisesFromAProfile) {
  const std::string profile = small_profile(folder_);
  const auto advise = [&](Words more) {
    more.insert(more.begin(),
                {"advise", "--network", "two-sites", "--profile", profile, "--global-batch", "32"});
    return run(more);
  };
  const CommandResult table = advise({"--workers", "4", "--out", folder_ / "advice"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("rte · bert-tiny · 32 examples a step"), std::string::npos) << table.out;
  const Json advice = Json::parse(read_text(folder_ / "advice/advice.json"));
  EXPECT_EQ(advice["format"], "syncopate-advice-1");
  EXPECT_EQ(advice["task"], "rte");
  double before = 1e300;
  for (const Json& row : advice["rows"]) {
    const double speed = row["predicted"]["examples_per_s"];
    EXPECT_LE(speed, before);
    before = speed;
    if (row["workers"] == 1) {
      // Two cores for one worker: 120 ms of passes on one.
      EXPECT_NEAR(row["predicted"]["ms"].get<double>(), 61.5, 1e-6);
    }
  }
  const CommandResult alone = advise({"--workers", "1"});
  EXPECT_NE(alone.out.find("nothing else"), std::string::npos) << alone.out;
  EXPECT_EQ(alone.out.find("faster"), std::string::npos) << alone.out;
  expect_complaint(advise({"--workers", "4", "--optimizer", "sgd"}), 2, "--optimizer adamw");
}

TEST_F(CommandLine, RoomCheckFindsForbiddenIncludes) {
  std::filesystem::create_directories(folder_ / "tree/cmake");
  std::filesystem::create_directories(folder_ / "tree/syncopate/base");
  std::filesystem::copy(source_dir() / "cmake/rooms.cmake", folder_ / "tree/cmake/rooms.cmake");
  const Words check{"python3", source_dir() / "tools/check_rooms.py", folder_ / "tree"};
  write_text(folder_ / "tree/syncopate/base/a.h", "#include \"syncopate/base/b.h\"\n");
  EXPECT_EQ(run_command(check).exit_code, 0);
  for (const char* line :
       {"#include \"syncopate/spec/run_spec.h\"\n", "  # include <syncopate/spec/run_spec.h>\n",
        "#include <ATen/ATen.h>\n", "#include <gloo/context.h>\n"}) {
    write_text(folder_ / "tree/syncopate/base/a.h", line);
    EXPECT_EQ(run_command(check).exit_code, 1) << line;
  }
}

}  // namespace
}  // namespace syncopate::test
