// Hogwild: processes of one machine update one model in shared memory, each at its own pace, without locks.
//   mpirun -n 4 ./hogwild
#include <syncopate/syncopate.h>
#include <torch/torch.h>

#include <cstdio>

int main(int, char** argv) {
  auto world = syncopate::join(argv);
  torch::nn::Sequential net(torch::nn::Linear(1, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  syncopate::Session session(net.ptr(), world, {.strategy = "hogwild", .optimizer = "sgd"});
  torch::manual_seed(world.rank());
  for (int step = 0; step < 600; ++step) {  // nobody waits for anybody
    const at::Tensor x = torch::rand({32, 1}) * 6 - 3;
    session.step(torch::mse_loss(net->forward(x), x.sin()), 0.005);  // gradients come late: not too fast
  }
  double error = 0;
  session.with_model([&] {  // all have arrived: the one model
    const torch::NoGradGuard no_grad;
    const at::Tensor x = torch::linspace(-3, 3, 200).view({-1, 1});
    error = torch::mse_loss(net->forward(x), x.sin()).item<double>();
  });
  session.leave();
  if (world.rank() == 0) std::printf("mean squared error %.5f with %d workers\n", error, world.size());
  world.leave();
  return error < 0.05 ? 0 : 1;
}
