// A libtorch model of your own, trained with ddp by several processes: learns y = sin(x).
//   mpirun -n 2 ./own_model        or by any launcher that Syncopate knows, or alone
#include <torch/torch.h>

#include <cstdio>

#include "syncopate/comm/open.h"
#include "syncopate/nn/module_model.h"
#include "syncopate/parallel/make.h"
#include "syncopate/parallel/session.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/world.h"

using namespace syncopate;

int main(int, char** argv) {
  run::prepare_process(argv);  // the kernels that this CPU has
  const run::World world = run::find_world({}, run::environment_of_process());
  comm::Membership membership = run::join(world, std::chrono::seconds(30));
  comm::Group& group = *membership.group;
  run::set_up_compute(run::default_threads(world.local_size));

  torch::manual_seed(world.rank);  // ranks may begin apart: the strategy makes them equal
  torch::nn::Sequential net(torch::nn::Linear(1, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  nn::ModuleModel model(net.ptr(), [&](const tensor::Batch& batch) {
    const at::Tensor error = net->forward(batch.at("x")) - batch.at("y");
    return tensor::Loss{error.square().sum(), batch.size()};
  });

  double loss = 0;
  {
    const auto ddp = parallel::make_strategy({.name = "ddp"}, group);
    parallel::Session session(model, group, *ddp.strategy, {.weight_decay = 0});
    for (int step = 0; step < 400; ++step) {
      tensor::Batch batch;  // every rank draws its own examples
      const at::Tensor x = torch::rand({32, 1}) * 6 - 3;
      batch.fields = {{"x", x}, {"y", x.sin()}};
      batch.ids.resize(32);
      loss = session.step({&batch, 1}, 0.01);
    }
  }
  if (world.rank == 0) std::printf("mean squared error %.5f with %d workers\n", loss, world.size);
  membership.leave();
  return loss < 0.01 ? 0 : 1;
}
