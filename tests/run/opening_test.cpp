#include "syncopate/run/records/opening.h"

#include <gtest/gtest.h>

namespace syncopate::run {
namespace {

/// So many examples, of which nobody looks at one.
class Counted : public data::Dataset {
 public:
  explicit Counted(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  tensor::Batch collate(std::span<const int64_t>, uint64_t) const override { return {}; }
  uint64_t fingerprint() const override { return 0; }

 private:
  int64_t size_;
};

using Lines = std::vector<std::string>;

class Announced : public testing::Test {
 protected:
  Announced() {
    setup_.train = std::make_shared<Counted>(640);
    setup_.test = std::make_shared<Counted>(64);
    setup_.input = "8000 words";
    spec_.task.name = "sst2";
    spec_.model.name = "bert-tiny";
    spec_.strategy.name = "ddp";
    spec_.comm.workers = 2;
    spec_.train.batch_size = 16;
  }
  Lines lines(const std::string& launcher, const std::string& backend, const std::string& cut = "") {
    return lines_of({.spec = spec_,
                     .setup = setup_,
                     .parameters = 1'540'000,
                     .steps = 20,
                     .launcher = launcher,
                     .backend = backend,
                     .cut = cut,
                     .folder = "runs/my run"});
  }

  spec::RunSpec spec_;
  tasks::TaskSetup setup_;
};

TEST_F(Announced, ARunSaysWhatItIsAboutToDo) {
  EXPECT_EQ(
      lines("syncopate", "shm"),
      (Lines{"sst2 · bert-tiny (1.5 million parameters, 8000 words) · ddp · 2 workers over shared memory",
             "640 training and 64 test examples · 32 per step · 20 steps · into runs/my run",
             "watch: syncopate watch 'runs/my run'"}));
  setup_.validation = std::make_shared<Counted>(10);
  spec_.model.init_from = "models/base";
  spec_.pipeline.stages = 2;
  spec_.comm.workers = 4;
  spec_.pipeline.micro_batches = 2;
  spec_.pipeline.schedule = "1f1b";
  spec_.activation.codec = "ac-sgd";
  EXPECT_EQ(
      lines("syncopate", "gloo", "1,1"),
      (Lines{"sst2 · from models/base (1.5 million parameters, 8000 words) · ddp · 4 workers over gloo",
             "640 training, 10 validation and 64 test examples · 32 per step · 20 steps · into runs/my run",
             "pipeline: 2 stages (1,1 blocks) x 2 replicas, 2 micro-batches, schedule 1f1b, activations by "
             "ac-sgd",
             "watch: syncopate watch 'runs/my run'"}));
}

TEST_F(Announced, ARunSaysHowItsWorkersExchange) {
  const auto workers = [this](const std::string& launcher, const std::string& backend) {
    const std::string line = lines(launcher, backend).front();
    return line.substr(line.find("2 workers"));
  };
  EXPECT_EQ(workers("torchrun", "shm+gloo"),
            "2 workers by torchrun over shared memory within hosts and gloo between them");
  EXPECT_EQ(workers("mpirun", "mpi"), "2 workers by mpirun over mpi");
  EXPECT_EQ(workers("syncopate", "nccl"), "2 workers over nccl");
  EXPECT_EQ(workers("syncopate", "one-gpu"), "2 workers within the memory of one GPU");
  EXPECT_EQ(workers("none", "none"), "2 workers");
}

TEST_F(Announced, WorkersThatRunFreeMakeUpdates) {
  spec_.strategy.name = "hogwild";
  EXPECT_EQ(lines("syncopate", "shm").at(1),
            "640 training and 64 test examples · 16 per update · 20 updates · into runs/my run");
}

}  // namespace
}  // namespace syncopate::run
