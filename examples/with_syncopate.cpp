// plain_loop.cpp on any number of workers: mpirun -n 2 ./with_syncopate
#include <syncopate/syncopate.h>
#include <torch/torch.h>

#include <cstdio>

/// The examples of a step: points of y = sin(x).
at::Tensor examples(int64_t number) {
  torch::manual_seed(number);
  return torch::rand({64, 1}) * 6 - 3;
}

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(1, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  syncopate::Session session(net.ptr(), {.strategy = "ddp"});
  double last = 0;
  for (int64_t step = 0; step < 400; ++step) {
    const at::Tensor x = examples(step * session.workers() + session.rank());
    const at::Tensor loss = torch::mse_loss(net->forward(x), x.sin());
    last = session.step(loss, 1e-2);
  }
  session.leave();
  std::printf("loss %.5f\n", last);
  return last < 0.01 ? 0 : 1;
}
