// A model and a data set of your own, gradients in 8 bits, a checkpoint after every epoch. Stop it whenever
// you like and start it again, on as many workers as you like: it goes on with the same global batches.
//   mpirun -n 2 ./own_data CHECKPOINT [EPOCHS]
#include <syncopate/syncopate.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

/// Points in the plane, labelled by whether they lie inside of a ring.
class Ring : public syncopate::Dataset {
 public:
  int64_t size() const override { return points_.size(0); }
  syncopate::Batch collate(std::span<const int64_t> ids, uint64_t) const override {
    syncopate::Batch batch;
    batch.ids.assign(ids.begin(), ids.end());  // dropout follows them, and so does the order of an epoch
    batch.fields["x"] = points_.index_select(0, torch::tensor(batch.ids));
    batch.fields["label"] = batch.fields["x"].square().sum(1).sub(0.5).abs().lt(0.25).to(torch::kLong);
    return batch;
  }

 private:
  at::Tensor points_ = (torch::manual_seed(1), torch::rand({2000, 2}) * 2 - 1);
};

int main(int count, char** argv) {
  if (count < 2) return std::printf("usage: own_data CHECKPOINT [EPOCHS]\n"), 2;
  const std::filesystem::path checkpoint = argv[1];
  const int64_t epochs = count > 2 ? std::atoi(argv[2]) : 12;
  auto world = syncopate::join(argv);
  const auto data = std::make_shared<Ring>();
  torch::nn::Sequential net(torch::nn::Linear(2, 64), torch::nn::ReLU(), torch::nn::Dropout(0.1),
                            torch::nn::Linear(64, 2));
  const auto loss_of = [&](const syncopate::Batch& batch) {
    const auto options = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
    return syncopate::Loss{
        torch::nn::functional::cross_entropy(net->forward(batch.at("x")), batch.at("label"), options),
        batch.size()};
  };
  syncopate::Session session(net.ptr(), loss_of, world, {.strategy = "all-reduce", .codec = "int8"});
  if (std::filesystem::exists(checkpoint)) {
    for (const std::string& note : session.resume(checkpoint))
      if (world.rank() == 0) std::printf("%s\n", note.c_str());
  }
  auto batches = session.batches(data, {.global_batch = 50, .seed = 1});
  for (double sum = 0; session.steps() < 40 * epochs;) {
    sum += session.step(batches.next(), 0.01);
    if (session.steps() % 40 != 0) continue;
    session.save(checkpoint);
    if (world.rank() == 0)
      std::printf("epoch %ld loss %.6f\n", session.steps() / 40, sum / 40), std::fflush(stdout);
    sum = 0;
  }
  session.leave();
  world.leave();
}
