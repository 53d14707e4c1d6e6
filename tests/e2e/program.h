#pragma once

#include <gtest/gtest.h>

#include "tests/support/runs.h"
#include "tests/support/tasks.h"

namespace syncopate::test {

/// Runs the program on small data of every family.
class Program : public testing::Test {
 protected:
  using Json = nlohmann::json;
  using Words = std::vector<std::string>;

  static CommandResult run(Words words) {
    words.insert(words.begin(), program().string());
    return run_command(words);
  }

  std::string data_for(const std::string& task) const {
    if (task == "mlm" || task == "clm") return small_corpus(folder_ / "corpus");
    if (task == "squad") return small_squad(folder_ / "squad");
    if (task == "csv") return small_table(folder_ / "table");
    return small_idx(folder_ / "idx");
  }

  /// `syncopate train` for the task into folder_/name; `more` flags overrule.
  CommandResult train(const std::string& task, const std::string& name, const Words& more) const {
    Words words{"train",  "--task",  task,        "--data", data_for(task), "--out", folder_ / name,
                "--seed", "5",       "--threads", "1",      "--lr",         "1e-3",  "--global-batch",
                "10",     "--steps", "12"};
    if (task == "csv") words.insert(words.end(), {"--text", "text", "--label", "label"});
    if (task == "squad") words.insert(words.end(), {"--max-length", "80", "--set", "task.stride=8"});
    if (task == "mlm" || task == "clm" || task == "csv") words.insert(words.end(), {"--max-length", "16"});
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  /// The result of a run that must succeed.
  Json trained(const std::string& task, const std::string& name, const Words& more) const {
    const CommandResult result = train(task, name, more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto path = folder_ / name / "result.json";
    return std::filesystem::exists(path) ? Json::parse(read_text(path)) : Json();
  }

  /// `evaluate` on the task's test file with the run's model; the score.
  Json evaluated(const std::string& task, const std::string& name, const std::string& file,
                 const Words& more) const {
    Words words{"evaluate", "--task",       task,     "--data",    data_for(task) + file,
                "--model",  folder_ / name, "--json", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? Json::parse(result.out) : Json();
  }

  /// `predict` on the task's test file with the run's model, and what `score` says of that file.
  Json scored(const std::string& task, const std::string& name, const std::string& file, const Words& columns,
              const Words& more) const {
    const std::string data = data_for(task) + file, answers = folder_ / (name + ".answers");
    Words words{"predict",      "--task",    task, "--data", data,   "--model",
                folder_ / name, "--threads", "1",  "--out",  answers};
    words.insert(words.end(), columns.begin(), columns.end());
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult predicted = run(words);
    EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
    return score_of(task, data, answers, columns);
  }

  static Json score_of(const std::string& task, const std::string& data, const std::string& answers,
                       const Words& columns) {
    Words words{"score", "--task", task, "--data", data, "--predictions", answers, "--json"};
    words.insert(words.end(), columns.begin(), columns.end());
    const CommandResult result = run(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? Json::parse(result.out) : Json();
  }

  /// Every measure of the score is that of the run's last evaluation, to the rounding of a sum.
  static void expect_recorded(const Json& score, const Json& result) {
    EXPECT_NE(result["eval"].value("model", ""), "") << "whose score it is";
    for (const auto& [name, value] : result["eval"].items()) {
      if (name == "step" || name == "seconds" || name == "model") continue;
      ASSERT_TRUE(score.contains(name)) << name;
      if (value.is_number()) {
        EXPECT_NEAR(score[name].get<double>(), value.get<double>(), 1e-5 * value.get<double>()) << name;
      } else {
        EXPECT_EQ(score[name], value) << name;
      }
    }
  }

  /// The complaint of a run that must fail with `code`, in one sentence that holds `part`.
  static void expect_complaint(const CommandResult& result, int code, const std::string& part) {
    EXPECT_EQ(result.exit_code, code) << result.err;
    const size_t start = result.err.find("syncopate: ");
    ASSERT_NE(start, std::string::npos) << result.err;
    const std::string sentence = result.err.substr(start);
    EXPECT_EQ(sentence.find('\n'), sentence.size() - 1) << sentence;
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }

  static const Words& two_workers() {
    static const Words words{"--strategy", "ddp", "--workers", "2"};
    return words;
  }
  static Words two_workers_and(Words more) {
    more.insert(more.end(), two_workers().begin(), two_workers().end());
    return more;
  }

  TempDir folder_;
};

}  // namespace syncopate::test
