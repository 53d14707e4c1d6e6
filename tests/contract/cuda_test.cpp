#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "syncopate/comm/nccl.h"
#include "syncopate/comm/one_gpu/one_gpu.h"
#include "syncopate/comm/staged.h"
#include "syncopate/gpu/graph.h"
#include "tests/contract/mpi_ranks.h"
#include "tests/contract/ranks.h"

// Every operation on tensors that live on a GPU, all ranks on the first one.
namespace syncopate::test {
namespace {

using comm::Group;
using comm::Op;

/// Large, and made by work that the device still has to do when the operation starts.
at::Tensor made_late(int rank, int64_t size) {
  at::Tensor x = at::arange(size, at::TensorOptions(at::kCUDA).dtype(at::kFloat)).remainder(31).add(rank);
  for (int k = 0; k < 50; ++k) x = x.mul(2).sub(x);
  return x;
}

double expected(int rank, int64_t index) { return static_cast<double>(index % 31 + rank); }

void expect_of(const at::Tensor& got, int rank, const std::string& what) {
  const at::Tensor host = got.cpu();
  for (const int64_t i : {int64_t{0}, host.numel() / 2, host.numel() - 1})
    EXPECT_EQ(host[i].item<double>(), expected(rank, i)) << what;
}

void every_operation(Group& group) {
  constexpr int64_t kSize = 300'007;
  const int rank = group.rank(), size = group.size(), next = (rank + 1) % size;
  const auto room = [&] {
    std::vector<at::Tensor> list;
    for (int r = 0; r < size; ++r) list.push_back(at::zeros({kSize}, at::kCUDA));
    return list;
  };
  at::Tensor sum = made_late(rank, kSize);
  comm::Pending summing = group.all_reduce(sum, Op::kSum);
  at::Tensor largest = made_late(rank, kSize).to(at::kBFloat16);
  group.all_reduce(largest, Op::kMax).wait();
  summing.wait();
  // Read by the device itself, behind the copy back.
  EXPECT_EQ(sum.sub(made_late(0, kSize).mul(size)).abs().max().item<double>(), size * (size - 1) / 2);
  expect_of(largest, size - 1, "max");

  for (int root = 0; root < size; ++root) {
    at::Tensor spread = made_late(rank, kSize);
    group.broadcast(spread, root).wait();
    expect_of(spread, root, "broadcast");
    const std::vector<at::Tensor> gathered = rank == root ? room() : std::vector<at::Tensor>();
    group.gather(gathered, made_late(rank, kSize), root).wait();
    for (size_t r = 0; r < gathered.size(); ++r) expect_of(gathered[r], static_cast<int>(r), "gather");
    std::vector<at::Tensor> parts;
    for (int r = 0; rank == root && r < size; ++r) parts.push_back(made_late(r, kSize));
    at::Tensor part = at::zeros({kSize}, at::kCUDA);
    group.scatter(part, parts, root).wait();
    expect_of(part, rank, "scatter");
  }
  const std::vector<at::Tensor> all = room();
  group.all_gather(all, made_late(rank, kSize)).wait();
  for (int r = 0; r < size; ++r) expect_of(all[static_cast<size_t>(r)], r, "all_gather");

  at::Tensor theirs = at::zeros({kSize}, at::kCUDA);
  comm::Pending sending = group.send(made_late(rank, kSize), next, 5);
  group.receive(theirs, (rank + size - 1) % size, 5).wait();
  sending.wait();
  expect_of(theirs, (rank + size - 1) % size, "receive");

  const std::unique_ptr<Group> mirrored = group.split(0, -rank);
  at::Tensor spread = made_late(rank, kSize);
  mirrored->broadcast(spread, 0).wait();
  expect_of(spread, size - 1, "split");
}

TEST(Cuda, EveryOperationMovesTensorsThroughTheHost) {
  if (!at::hasCUDA()) GTEST_SKIP() << "needs a CUDA device";
  for (const int ranks : {2, 3}) {
    run_gloo_ranks(ranks, every_operation, kPatience,
                   [](std::unique_ptr<Group> inner) { return comm::staged(std::move(inner)); });
  }
}

TEST(Cuda, EveryOperationWorksInsideOneProcess) {
  if (!at::hasCUDA()) GTEST_SKIP() << "needs a CUDA device";
  for (const int ranks : {1, 2, 3}) run_ranks(ranks, every_operation);
  if (!gpu::built()) return;
  for (const int ranks : {2, 3}) {
    run_ranks(ranks, [](Group& group) {
      gpu::use_own_stream(at::Device(at::kCUDA, 0));  // ranks must not look before the others' work is done
      every_operation(group);
    });
  }
}

TEST(Cuda, EveryOperationWorksOverNcclWithAsManyRanksAsThereAreGpus) {
  if (!at::hasCUDA() || !comm::has_nccl()) GTEST_SKIP() << "needs a CUDA device and NCCL";
  const int gpus = static_cast<int>(at::detail::getCUDAHooks().getNumGPUs());
  run_ranks_over(gpus, every_operation, kPatience, [](std::shared_ptr<lifeline::Lifeline> line) {
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(line->rank()));
    std::unique_ptr<Group> inner =
        comm::staged(line->size() == 1 ? comm::open_alone() : comm::open_gloo(line, kPatience));
    return comm::over_nccl(std::move(inner), line, kPatience, device);
  });
}

/// Under mpirun: as many processes, all on the first GPU. NCCL takes them for processes of different hosts,
/// so that it connects them over sockets.
TEST(Cuda, EveryOperationWorksOverNcclInSeveralProcesses) {
  if (!at::hasCUDA() || !comm::has_nccl() || mpi_ranks() < 2)
    GTEST_SKIP() << "needs a CUDA device, NCCL and mpirun -n 2";
  ::setenv("NCCL_HOSTID", std::getenv("OMPI_COMM_WORLD_RANK"), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  run_mpi_ranks(every_operation, kPatience, [](std::shared_ptr<lifeline::Lifeline> line) {
    std::unique_ptr<Group> inner = comm::staged(comm::open_shm(line, kPatience));
    return comm::over_nccl(std::move(inner), line, kPatience, c10::Device(c10::kCUDA, 0));
  });
}

TEST(Cuda, RanksThatCannotMapEachOthersMemoryExchangeThroughTheHost) {
  if (!at::hasCUDA() || !gpu::built()) GTEST_SKIP() << "needs a CUDA device and our kernels";
  // A process cannot open its own handle, and these ranks are threads of one.
  for (const int ranks : {2, 3}) {
    run_gloo_ranks(ranks, every_operation, kPatience, [](std::unique_ptr<Group> inner) {
      return comm::on_one_gpu(comm::staged(std::move(inner)));
    });
  }
}

}  // namespace
}  // namespace syncopate::test
