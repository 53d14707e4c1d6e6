// The examples, built as a stranger would against an installed copy, and run under launchers.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "syncopate/base/process.h"
#include "syncopate/run/world.h"
#include "tests/support/child.h"
#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

/// Installs the library and builds the examples, once for all tests.
class Examples : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    where_ = std::make_unique<TempDir>();
    std::string libtorch = SYNCOPATE_PREFIXES;
    std::replace(libtorch.begin(), libtorch.end(), ':', ';');
    const std::string prefix = installed();
    for (const Words& words : {Words{"cmake", "--install", program().parent_path(), "--prefix", prefix},
                               Words{"cmake", "-S", source_dir() / "examples", "-B", *where_ / "build",
                                     "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
                                     "-DCMAKE_PREFIX_PATH=" + prefix + ";" + libtorch},
                               Words{"cmake", "--build", *where_ / "build", "--parallel", "2"}}) {
      const CommandResult result = run_command(words, {}, 600);
      ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
    }
  }
  static void TearDownTestSuite() { where_.reset(); }

  static std::string installed() { return *where_ / "installed"; }
  static std::string example(const std::string& name) { return *where_ / ("build/" + name); }
  static Words under_mpirun(int ranks, Words words) {
    const Words mpirun{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", std::to_string(ranks)};
    words.insert(words.begin(), mpirun.begin(), mpirun.end());
    return words;
  }
  static std::string output_of(const Words& words, const Words& environment = {}) {
    const CommandResult result = run_command(words, environment);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result.out;
  }
  /// The lines of `text` that begin with "epoch".
  static Words epochs_of(const std::string& text) {
    Words lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("epoch")) lines.push_back(line);
    }
    return lines;
  }

  TempDir folder_;

 private:
  static std::unique_ptr<TempDir> where_;
};
std::unique_ptr<TempDir> Examples::where_;

TEST_F(Examples, OwnModelRunsUnderEveryLauncherAndAlone) {
  const std::string alone = output_of({example("own_model")});
  EXPECT_NE(alone.find("with 1 workers"), std::string::npos) << alone;
  const std::string mpirun = output_of(under_mpirun(2, {example("own_model")}));
  EXPECT_NE(mpirun.find("with 2 workers"), std::string::npos) << mpirun;
  const std::string torchrun = output_of(
      {SYNCOPATE_TORCHRUN, "--nproc_per_node", "2", "--master_port", std::to_string(29600 + ::getpid() % 90),
       "-r", "1", "-t", "1", "--no_python", example("own_model")},
      {"PYTHONWARNINGS=ignore"});
  EXPECT_NE(torchrun.find("with 2 workers"), std::string::npos) << torchrun;
  EXPECT_EQ(run_command({installed() + "/bin/syncopate", "--version"}).exit_code, 0);
  const std::filesystem::path share = installed() + "/share";
  EXPECT_EQ(read_text(share / "man/man1/syncopate.1").substr(0, 14), ".TH SYNCOPATE ");
  for (const char* name : {"bash-completion/completions/syncopate", "zsh/site-functions/_syncopate",
                           "fish/vendor_completions.d/syncopate.fish"}) {
    EXPECT_NE(read_text(share / name).find("parameter-server"), std::string::npos) << name;
  }
}

TEST_F(Examples, PlainLoopNeedsThreeLinesChanged) {
  output_of({example("plain_loop")});
  output_of({example("with_syncopate")});
  output_of(under_mpirun(2, {example("with_syncopate")}));
  std::set<std::string> before;
  std::ifstream plain(source_dir() / "examples/plain_loop.cpp"),
      changed(source_dir() / "examples/with_syncopate.cpp");
  for (std::string line; std::getline(plain, line);) before.insert(line);
  Words fresh;
  for (std::string line; std::getline(changed, line);) {
    if (!before.contains(line) && !line.starts_with("//") && !line.starts_with("#include"))
      fresh.push_back(line);
  }
  ASSERT_EQ(fresh.size(), 4u) << "three lines changed, and one at the end";
  EXPECT_NE(fresh[0].find("Session"), std::string::npos);
  EXPECT_NE(fresh[3].find("leave"), std::string::npos);
}

TEST_F(Examples, HogwildSharesOneModel) {
  const std::string said = output_of(under_mpirun(2, {example("hogwild")}));
  EXPECT_NE(said.find("with 2 workers"), std::string::npos) << said;
}

TEST_F(Examples, OwnDataIsKilledAndResumesThereAndOnAnotherCount) {
  const std::filesystem::path checkpoint = folder_ / "killed";
  {
    std::map<std::string, std::string> variables = run::environment_of_process();
    variables["WORLD_SIZE"] = "2";
    variables["MASTER_ADDR"] = "127.0.0.1";
    variables["MASTER_PORT"] = std::to_string(20000 + ::getpid() % 10000);
    std::vector<syncopate::Process> ranks;
    for (const char* rank : {"0", "1"}) {
      ProcessOptions options;
      options.program = example("own_data");
      options.argv = {example("own_data"), checkpoint, "100000"};
      variables["RANK"] = rank;
      options.environment = variables;
      options.log = folder_ / rank;
      ranks.emplace_back(options);
    }
    EXPECT_TRUE(eventually([&] { return epochs_of(read_text(folder_ / "0")).size() >= 4; }, 60));
    ranks[1].signal(SIGKILL);
    ranks[1].wait();
    EXPECT_NE(ranks[0].wait(), 0) << "who is left ends too";
    EXPECT_NE(read_text(folder_ / "0").find("rank 1"), std::string::npos) << read_text(folder_ / "0");
  }
  std::filesystem::copy(checkpoint, folder_ / "copy");

  // It goes on after the epoch of the checkpoint as if it had never been killed.
  const int done = static_cast<int>(epochs_of(read_text(folder_ / "0")).size());
  const std::string until = std::to_string(done + 3);
  const Words straight =
      epochs_of(output_of(under_mpirun(2, {example("own_data"), folder_ / "longer", until})));
  const Words resumed = epochs_of(output_of(under_mpirun(2, {example("own_data"), checkpoint, until})));
  ASSERT_FALSE(resumed.empty());
  EXPECT_LT(resumed.size(), straight.size());
  EXPECT_TRUE(std::equal(resumed.rbegin(), resumed.rend(), straight.rbegin())) << resumed.front();

  const std::string alone = output_of({example("own_data"), folder_ / "copy", until});
  EXPECT_NE(alone.find("workers were 2 and are 1 now"), std::string::npos) << alone;
  EXPECT_NE(alone.find("residuals were dropped"), std::string::npos) << alone;
  const Words rest = epochs_of(alone);
  EXPECT_EQ(rest.size(), resumed.size());
  EXPECT_NE(rest, resumed) << "other residuals: the foil";
}

TEST_F(Examples, WhatIsNoCheckpointIsRefused) {
  write_text(folder_ / "text", "no checkpoint");
  const CommandResult other = run_command({example("own_data"), folder_ / "text", "1"});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_NE(other.err.find("the checkpoint " + (folder_ / "text").string() + " is damaged"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(read_text(folder_ / "text"), "no checkpoint");
}

}  // namespace
}  // namespace syncopate::test
