// What carries the exchange: MPI under its launcher, shared memory where there is little, and what is left.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tests/support/runs.h"

namespace syncopate::test {
namespace {

using Words = std::vector<std::string>;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words under_mpirun(int ranks, const Words& words) {
  return joined({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", std::to_string(ranks)}, words);
}

std::set<std::string> files_in_dev_shm() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    names.insert(entry.path().filename().string());
  return names;
}

/// Whether a process has the file mapped: one of others, who use the machine too.
bool is_in_use(const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (read_text(entry.path() / "maps").find("/dev/shm/" + name) != std::string::npos) return true;
  }
  return false;
}

class Backends : public testing::Test {
 protected:
  void SetUp() override { data_ = small_sst2(folder_); }
  void TearDown() override {
    for (const std::string& name : files_in_dev_shm())
      EXPECT_TRUE(before_.count(name) > 0 || is_in_use(name)) << name << " is left in /dev/shm";
    EXPECT_TRUE(processes_with(folder_.path().string()).empty());
  }
  Words command(const std::string& name, const Words& more) {
    return train_command(data_, folder_ / name, joined({"--strategy", "ddp", "--steps", "12"}, more));
  }
  std::string model(const std::string& name) const {
    return read_text(folder_ / name / "model/model.safetensors");
  }
  std::string backend(const std::string& name) const {
    return nlohmann::json::parse(read_text(folder_ / name / "env.json")).at("backend");
  }
  /// MPI is optional where the program is built.
  bool without_mpi() {
    static const bool missing =
        run_command(command("none", {"--workers", "2", "--backend", "mpi"})).err.find("built without MPI") !=
        std::string::npos;
    return missing;
  }
  /// Exit code 2, one sentence, no folder.
  void expect_refused(const CommandResult& result, const std::string& name, const std::string& sentence) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err.find("syncopate: " + sentence), 0u) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / name));
  }

  TempDir folder_;
  std::string data_;
  std::set<std::string> before_ = files_in_dev_shm();
};

// Three ranks: Gloo's ring adds in another order, which is the foil.
TEST_F(Backends, MpiGivesTheBitsOfSharedMemory) {
  if (without_mpi()) GTEST_SKIP() << "built without MPI";
  const std::vector<Words> variants{{}, {"--strategy", "all-reduce", "--codec", "int8"}};
  for (size_t k = 0; k < variants.size(); ++k) {
    const std::string mpi = "mpi" + std::to_string(k), shm = "shm" + std::to_string(k);
    const CommandResult result =
        run_command(under_mpirun(3, joined(command(mpi, {"--backend", "mpi"}), variants[k])));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("3 workers by mpirun over mpi"), std::string::npos) << result.err;
    const CommandResult other =
        run_command(joined(command(shm, {"--backend", "shm", "--workers", "3"}), variants[k]));
    ASSERT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(model(mpi), model(shm));
  }
  ASSERT_EQ(run_command(command("gloo", {"--backend", "gloo", "--workers", "3"})).exit_code, 0);
  EXPECT_NE(model("gloo"), model("mpi0"));
}

TEST_F(Backends, MpiNamesTheRankThatFailed) {
  if (without_mpi()) GTEST_SKIP() << "built without MPI";
  for (const std::string fault : {"kill", "stop"}) {
    const CommandResult result = run_command(under_mpirun(
        3, command(fault, {"--steps", "100000", "--backend", "mpi", "--timeout", fault == "kill" ? "20" : "6",
                           "--set", "comm.fault=1:4:exchange:" + fault})));
    EXPECT_NE(result.exit_code, 0);
    const std::string sentence = fault == "kill" ? "syncopate: rank 1 died during exchange of step 4"
                                                 : "syncopate: rank 1 did not answer for 6";
    EXPECT_NE(result.err.find(sentence), std::string::npos) << result.err;
    const size_t warning = result.err.find("note: rank 1 has not answered for 2 s during exchange of step 4");
    EXPECT_EQ(warning < result.err.find(sentence), fault == "stop") << result.err;
    EXPECT_TRUE(processes_with(folder_.path().string()).empty());
  }
}

TEST_F(Backends, MpiNamesTheRankThatServesTheOthersToo) {
  if (without_mpi()) GTEST_SKIP() << "built without MPI";
  const CommandResult result =
      run_command(under_mpirun(3, command("run", {"--steps", "100000", "--backend", "mpi", "--timeout", "6",
                                                  "--set", "comm.fault=0:4:exchange:stop"})));
  EXPECT_NE(result.exit_code, 0);
  const std::string warning = "note: rank 0 has not answered for 2 s during exchange of step 4";
  EXPECT_NE(result.err.find(warning), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(warning), result.err.rfind(warning)) << "one of the others says it";
}

TEST_F(Backends, MpiNeedsItsOwnLauncher) {
  if (without_mpi()) GTEST_SKIP() << "built without MPI";
  expect_refused(run_command(command("run", {"--workers", "2", "--backend", "mpi"})), "run",
                 "the backend mpi is for workers that MPI's launcher has started: mpirun -n 2");
}

TEST_F(Backends, SharedMemoryNeedsNoRoomInDevShm) {
  if (!namespaces_allowed()) GTEST_SKIP() << "this system allows no namespaces of one's own";
  const CommandResult result = run_command(joined(
      {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
       "mount -t tmpfs -o size=4k none /dev/shm && head -c 100000 /dev/zero > /dev/shm/full; exec \"$@\"",
       "sh"},
      command("run", {"--workers", "2", "--backend", "shm"})));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("No space left on device"), std::string::npos)
      << "/dev/shm was full: " << result.err;
  EXPECT_EQ(backend("run"), "shm");
}

// A process that may write no file of more than 8 MB gets no more shared memory either.
TEST_F(Backends, TooLittleMemoryToShareIsAvoidedOrRefused) {
  const auto with_little = [&](const std::string& name, const Words& more) {
    return run_command(joined({"sh", "-c", "trap '' XFSZ; ulimit -f 16000; exec \"$@\"", "sh"},
                              command(name, joined({"--workers", "2"}, more))));
  };
  expect_refused(with_little("told", {"--backend", "shm"}), "told",
                 "the workers cannot share memory (cannot make 11 MiB of shared memory: File too large)");
  const CommandResult avoided = with_little("auto", {});
  EXPECT_EQ(avoided.exit_code, 0) << avoided.err;
  EXPECT_EQ(backend("auto"), "gloo");
}

TEST_F(Backends, TwoLevelsNeedSeveralHosts) {
  expect_refused(run_command(command("run", {"--workers", "2", "--backend", "shm+gloo"})), "run",
                 "the backend shm+gloo is for several hosts with several workers, but these run on one; use "
                 "shm");
}

// It says goodbye properly, in the middle of what the others do with it.
TEST_F(Backends, AWorkerThatLeavesTooEarlyIsNoticedBeforeTheDeadline) {
  const Words leaving{"--steps", "100000", "--timeout", "120", "--set", "comm.fault=1:4:exchange:leave"};
  for (const std::string backend : {"shm", "gloo", "mpi"}) {
    if (backend == "mpi" && without_mpi()) continue;
    const Words words = command(backend, joined({"--backend", backend}, leaving));
    const auto start = std::chrono::steady_clock::now();
    const CommandResult result =
        run_command(backend == "mpi" ? under_mpirun(3, words) : joined(words, {"--workers", "3"}));
    EXPECT_NE(result.exit_code, 0);
    const std::string sentence =  // Gloo knows of a connection alone
        backend == "gloo" ? "lost its connection to another rank in " : ": rank 1 left while rank ";
    EXPECT_NE(result.err.find(sentence), std::string::npos) << result.err;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60)) << "before the deadline";
  }
}

TEST_F(Backends, AKilledWorkerLeavesNoSharedMemory) {
  const CommandResult result =
      run_command(command("run", {"--workers", "3", "--backend", "shm", "--steps", "100000", "--set",
                                  "comm.fault=1:4:exchange:kill"}));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.err.find("rank 1 was killed by signal 9"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace syncopate::test
