// A libtorch module of your own, dropout included, trained by any number of processes: learns y = sin(x).
//   mpirun -n 2 ./own_model        or under torchrun or srun, or alone
#include <syncopate/syncopate.h>
#include <torch/torch.h>

#include <cstdio>

int main(int, char** argv) {
  auto world = syncopate::join(argv);
  torch::manual_seed(world.rank());  // ranks may begin apart: all take rank 0's start
  torch::nn::Sequential net(torch::nn::Linear(1, 64), torch::nn::Tanh(), torch::nn::Dropout(0.01),
                            torch::nn::Linear(64, 1));
  const auto loss_of = [&](const syncopate::Batch& batch) {
    const at::Tensor error = net->forward(batch.at("x")) - batch.at("y");
    return syncopate::Loss{error.square().sum(), batch.size()};
  };
  syncopate::Session session(net.ptr(), loss_of, world, {.strategy = "ddp", .optimizer = "adamw", .clip = 1});

  double loss = 0;
  for (int step = 0; step < 400; ++step) {
    const at::Tensor x = torch::rand({32, 1}) * 6 - 3;  // every rank draws its own examples
    syncopate::Batch batch;
    batch.fields = {{"x", x}, {"y", x.sin()}};
    loss = session.step(batch, 0.01);
  }
  session.finish();
  session.leave();
  if (world.rank() == 0) std::printf("mean squared error %.5f with %d workers\n", loss, world.size());
  world.leave();
  return loss < 0.02 ? 0 : 1;
}
