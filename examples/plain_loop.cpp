// A plain libtorch training loop of one process. with_syncopate.cpp is the same on any number of workers:
// compare the two.
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
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-2));
  double last = 0;
  for (int64_t step = 0; step < 400; ++step) {
    const at::Tensor x = examples(step);
    const at::Tensor loss = torch::mse_loss(net->forward(x), x.sin());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
  }
  std::printf("loss %.5f\n", last);
  return last < 0.01 ? 0 : 1;
}
