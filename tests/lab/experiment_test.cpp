#include "syncopate/lab/experiment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "syncopate/base/error.h"
#include "tests/support/support.h"

namespace syncopate::lab {
namespace {

std::string complaint(const std::string& text) {
  const test::TempDir folder;
  test::write_text(folder / "x.toml", text);
  try {
    read_experiment(folder / "x.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Experiment, TheQuickstartHasFourRowsOnTheSameBatch) {
  const Experiment experiment = read_experiment(test::source_dir() / "experiments/quickstart.toml");
  ASSERT_EQ(experiment.arms.size(), 4u);
  for (const auto& row : experiment.arms) EXPECT_EQ(row.spec.examples_per_step(), 32);
  EXPECT_EQ(experiment.arms[0].spec.strategy.name, "single");
  EXPECT_EQ(experiment.arms[3].spec.strategy.name, "ddp");
  EXPECT_EQ(experiment.arms[3].spec.comm.workers, 2);
}

TEST(Experiment, EveryFileHereCanBeRun) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "experiments")) {
    EXPECT_NO_THROW(read_experiment(entry.path())) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 4);
}

/// Names of [size.NAME] and of entries of [data] in a file, by its lines.
struct Choices {
  std::set<std::string> sizes, data;
};

Choices choices_in(const std::filesystem::path& file) {
  Choices found;
  bool in_data = false;
  std::istringstream text(test::read_text(file));
  for (std::string line; std::getline(text, line);) {
    constexpr std::string_view kSize = "[size.";
    if (line.starts_with("[")) in_data = line.starts_with("[data]");
    if (line.starts_with(kSize))
      found.sizes.insert(line.substr(kSize.size(), line.find_first_of(".]", kSize.size()) - kSize.size()));
    if (in_data && line.find(" = ") != std::string::npos && !line.starts_with("#"))
      found.data.insert(line.substr(0, line.find(' ')));
  }
  return found;
}

TEST(Experiment, EveryFileHereCanBeReadAtEverySize) {
  size_t sizes = 0, data = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "experiments")) {
    const Choices choices = choices_in(entry.path());
    FileOptions options;
    for (const std::string& name : choices.data) options.data.emplace_back(name, "/anywhere");
    Experiment usual;
    EXPECT_NO_THROW(usual = read_experiment(entry.path(), options)) << entry.path();
    for (const std::string& name : choices.sizes) {
      options.size = name;
      Experiment sized;
      EXPECT_NO_THROW(sized = read_experiment(entry.path(), options)) << entry.path() << " " << name;
      EXPECT_NE(sized.cost, usual.cost) << entry.path() << " " << name;
    }
    sizes += choices.sizes.size();
    data += choices.data.size();
  }
  EXPECT_GE(sizes, 5u);
  EXPECT_GE(data, 2u);
}

TEST(Experiment, RowsOverrideSharedSettings) {
  const test::TempDir folder;
  test::write_text(
      folder / "x.toml",
      "[settings]\nlr = 0.25\nstrategy.bucket_mib = 3\n[[row]]\nstrategy.name = \"ddp\"\nworkers = 2\n"
      "[[row]]\nstrategy = \"single\"\nlr = 0.5\n");
  const Experiment experiment = read_experiment(folder / "x.toml");
  EXPECT_EQ(experiment.arms[0].spec.optim.lr, 0.25);
  EXPECT_EQ(experiment.arms[0].spec.strategy.bucket_mib, 3);
  EXPECT_EQ(experiment.arms[1].spec.optim.lr, 0.5);
}

TEST(Experiment, RowsShareAGlobalBatchUnlessTheFileSaysOtherwise) {
  const test::TempDir folder;
  const std::string rows = "[[row]]\nstrategy=\"single\"\n[[row]]\nstrategy=\"ddp\"\nworkers=3\n";
  test::write_text(folder / "same.toml", rows);
  for (const auto& row : read_experiment(folder / "same.toml").arms)
    EXPECT_EQ(row.spec.examples_per_step(), 48);
  test::write_text(folder / "own.toml", "[settings]\nbatch_size = 5\n" + rows);
  const Experiment own = read_experiment(folder / "own.toml");
  EXPECT_EQ(own.arms[0].spec.examples_per_step(), 5);
  EXPECT_EQ(own.arms[1].spec.examples_per_step(), 15);
}

TEST(Experiment, RowsShareAValidationSplitWhereOneChooses) {
  const test::TempDir folder;
  const auto validations = [&](const std::string& text) {
    test::write_text(folder / "x.toml", text);
    std::string found;
    for (const auto& row : read_experiment(folder / "x.toml").arms)
      found += fmt::format("{} ", row.spec.validation().share);
    return found;
  };
  const std::string one = "[[row]]\nstrategy=\"single\"\n", two = "[[row]]\nstrategy=\"ddp\"\nworkers=2\n";
  EXPECT_EQ(validations(one + two), "0 0 ") << "the foil: nothing chooses";
  EXPECT_EQ(validations(one + two + "patience=3\n"), "0.05 0.05 ");
  EXPECT_EQ(validations(one + "validation=0.2\n" + two + "keep=\"best\"\n"), "0.2 0.2 ");
  EXPECT_EQ(validations(one + "task=\"mlm\"\n" + two + "patience=3\n"), "0 0.05 ") << "other data";
  EXPECT_NE(complaint(one + "validation=0.2\n" + two + "validation=0.1\n").find("hold out the same examples"),
            std::string::npos);
  EXPECT_NE(complaint(one + "validation=\"off\"\n" + two + "patience=1\n").find("row 1"), std::string::npos);
}

TEST(Experiment, RowsStartFromPhasesByName) {
  const test::TempDir folder;
  test::write_text(folder / "x.toml",
                   "[settings]\ntask = \"rte\"\n[[phase]]\nname = \"first\"\ntask = \"mnli\"\n"
                   "[[phase]]\nname = \"second\"\ninit_from = \"phase:first\"\n"
                   "[[row]]\nname = \"alone\"\n[[row]]\ninit_from = \"phase:second\"\n");
  const Experiment experiment = read_experiment(folder / "x.toml");
  ASSERT_EQ(experiment.phases.size(), 2u);
  EXPECT_EQ(experiment.phases[0].spec.task.name, "mnli");
  EXPECT_EQ(experiment.phases[1].spec.task.name, "supersense") << "phases take nothing of [settings]";
  EXPECT_EQ(experiment.phases[1].after, 0u);
  EXPECT_EQ(experiment.arms[0].name, "alone");
  EXPECT_EQ(experiment.arms[0].after, "");
  EXPECT_EQ(experiment.arms[0].starts.front(), std::nullopt);
  EXPECT_EQ(experiment.arms[1].after, "second");
  EXPECT_EQ(experiment.arms[1].starts.front(), 1u);
  EXPECT_EQ(experiment.arms[1].spec.task.name, "rte");
  EXPECT_NE(complaint("[[row]]\ninit_from = \"phase:none\"\n").find("no [[phase]] before it has this name"),
            std::string::npos);
  EXPECT_NE(complaint("[[phase]]\ntask = \"rte\"\n[[row]]\n").find("phase 1: a phase needs a name"),
            std::string::npos);
}

TEST(Experiment, SharedSettingsGoToTheRowsThatHeedThem) {
  const test::TempDir folder;
  const std::string rows =
      "[[row]]\nstrategy=\"ddp\"\nworkers=2\n[[row]]\nstrategy=\"local-sgd\"\nworkers=2\n";
  test::write_text(folder / "x.toml", "[settings]\n\"strategy.every\" = 5\n" + rows);
  test::write_text(folder / "plain.toml", rows);
  Experiment with = read_experiment(folder / "x.toml"), without = read_experiment(folder / "plain.toml");
  EXPECT_EQ(with.arms[1].spec.strategy.every, 5);
  EXPECT_EQ(with.arms[0].spec.name(), without.arms[0].spec.name()) << "nothing that ddp heeds was said";
  EXPECT_NE(with.arms[1].spec.name(), without.arms[1].spec.name());
}

TEST(Experiment, SettingsThatNobodyHeedsAreRefused) {
  EXPECT_NE(complaint("[[row]]\nstrategy=\"ddp\"\n\"strategy.every\" = 8\n")
                .find("row 1: strategy.every has no effect with ddp: it is a setting of local-sgd, diloco"),
            std::string::npos);
  EXPECT_NE(complaint("[settings]\n\"strategy.every\" = 5\n[[row]]\nstrategy=\"ddp\"\n[[row]]\nworkers=2\n")
                .find("settings: strategy.every has no effect in any row"),
            std::string::npos);
  EXPECT_NE(
      complaint("[[phase]]\nname=\"a\"\ntask=\"rte\"\ntext=\"x\"\n[[row]]\n").find("phase 1: --text has"),
      std::string::npos);
}

TEST(Experiment, ErrorsSayWhatIsWrongAndWhere) {
  EXPECT_NE(complaint("[[row]\n").find("x.toml:1: "), std::string::npos);
  EXPECT_NE(complaint("").find("lists nothing to run"), std::string::npos);
  EXPECT_NE(complaint("[setings]\n[[row]]\n").find("did you mean \"settings\"?"), std::string::npos);
  EXPECT_NE(complaint("[[row]]\nstrategy=\"single\"\n[[row]]\nstrategy = \"dpd\"\n")
                .find("row 2: unknown strategy \"dpd\"; did you mean \"ddp\"?"),
            std::string::npos);
  EXPECT_NE(complaint("[[row]]\nlr = [1]\n").find("row 1: lr must be"), std::string::npos);
}

}  // namespace
}  // namespace syncopate::lab
