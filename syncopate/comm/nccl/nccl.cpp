#include "syncopate/comm/nccl.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <stdlib.h>

#include <exception>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/gloo/store.h"
#include "syncopate/comm/operations/connect_aside.h"
#include "syncopate/comm/operations/own.h"
#include "syncopate/comm/operations/reduce_type.h"
#include "syncopate/comm/operations/waits.h"
#include "syncopate/comm/together/members.h"

namespace syncopate::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Backend = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;
using Work = c10::intrusive_ptr<c10d::Work>;

/// Where a group's ranks meet and what a group split from it starts from.
struct NcclPlace {
  std::string prefix;
  c10::Device device;
  int rank = 0;
  int size = 1;
};

/// Whether the GPU has done it within `slice`. Throws what went wrong.
bool done_within(c10d::Work& work, milliseconds slice) {
  constexpr std::chrono::microseconds kSpin(200), kNap(50);
  const Clock::time_point start = Clock::now();
  while (!work.isCompleted()) {
    const auto waited = Clock::now() - start;
    if (waited >= slice) return false;
    if (waited > kSpin) std::this_thread::sleep_for(kNap);
  }
  if (work.exception()) std::rethrow_exception(work.exception());
  return true;
}

class NcclOperation : public Pending::Work {
 public:
  NcclOperation(std::shared_ptr<Waits> waits, const char* operation, comm::Work work,
                std::function<void()> after)
      : waits_(std::move(waits)), operation_(operation), work_(std::move(work)), after_(std::move(after)) {}

  void wait() override {
    waits_->wait(operation_, [&](milliseconds slice) { return done_within(*work_, slice); });
    work_->wait();  // this thread's stream may rely on it, too
    if (after_) after_();
  }

 private:
  std::shared_ptr<Waits> waits_;
  const char* operation_;
  comm::Work work_;
  std::function<void()> after_;
};

/// libtorch's watchdog would end the process before anybody is told why. A program's own choice stands.
void silence_watchdog() {
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", 0);
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 0);
}

Backend connect_nccl(const std::shared_ptr<Waits>& waits, const NcclPlace& place) {
  silence_watchdog();
  const std::string trouble =
      fmt::format("rank {} cannot reach the other GPUs by NCCL from {}", place.rank, place.device.str());
  return connect_aside(waits, trouble, [waits, place] {
    const c10::cuda::CUDAGuard guard(place.device);
    const auto store = store_over(waits->lifeline(), waits->timeout());
    // Our own waits keep the deadline.
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::hours(24);
    const auto scoped = c10::make_intrusive<c10d::PrefixStore>(place.prefix, store);
    auto made = c10::make_intrusive<c10d::ProcessGroupNCCL>(scoped, place.rank, place.size, options);
    std::vector<at::Tensor> token{at::zeros({1}, at::TensorOptions(place.device))};
    const Work first = made->allreduce(token);  // NCCL connects in the first operation
    while (!done_within(*first, milliseconds(250))) {
      if (waits->dead()) break;
    }
    return made;
  });
}

class NcclGroup : public Group {
 public:
  NcclGroup(std::unique_ptr<Group> inner, std::shared_ptr<Waits> waits, NcclPlace place)
      : inner_(std::move(inner)),
        waits_(std::move(waits)),
        place_(std::move(place)),
        backend_(connect_nccl(waits_, place_)) {}

  ~NcclGroup() override {
    // NCCL sees to it that what others still need of this rank gets there, and waits for them: after a
    // failure, also one of this rank's own that nobody knows of yet, in vain.
    try {
      if (!waits_->dead() && std::uncaught_exceptions() == 0) {
        backend_->shutdown();
        return;
      }
    } catch (const std::exception&) {  // whoever waits for this rank learns of it by the lifeline
    }
    (void)backend_.release();
  }

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }

  Pending all_reduce(at::Tensor tensor, Op op) override {
    if (!takes(tensor)) return inner_->all_reduce(tensor, op);
    c10d::AllreduceOptions options;
    options.reduceOp = reduce_op<c10d::ReduceOp>(op);
    const at::Tensor mine = tensor.detach();
    const at::Tensor wide = mine.to(reduced_as(mine.scalar_type()));  // itself where the type is the same
    std::vector<at::Tensor> tensors{wide};
    std::function<void()> after;
    if (!wide.is_same(mine)) after = [mine, wide] { mine.copy_(wide); };
    return start(
        "all_reduce", [&] { return backend_->allreduce(tensors, options); }, std::move(after));
  }

  Pending broadcast(at::Tensor tensor, int root) override {
    if (!takes(tensor)) return inner_->broadcast(tensor, root);
    c10d::BroadcastOptions options;
    options.rootRank = root;
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    return start("broadcast", [&] { return backend_->broadcast(tensors, options); });
  }

  Pending gather(std::vector<at::Tensor> into, at::Tensor mine, int root) override {
    if (!takes(mine)) return inner_->gather(std::move(into), mine, root);
    c10d::GatherOptions options;
    options.rootRank = root;
    std::vector<std::vector<at::Tensor>> outputs;
    if (rank() == root) outputs.push_back(as_bytes(into));
    std::vector<at::Tensor> inputs{as_bytes(mine)};
    return start("gather", [&] { return backend_->gather(outputs, inputs, options); });
  }

  Pending scatter(at::Tensor into, std::vector<at::Tensor> from, int root) override {
    if (!takes(into)) return inner_->scatter(into, std::move(from), root);
    c10d::ScatterOptions options;
    options.rootRank = root;
    std::vector<at::Tensor> outputs{as_bytes(into)};
    std::vector<std::vector<at::Tensor>> inputs;
    if (rank() == root) inputs.push_back(as_bytes(from));
    return start("scatter", [&] { return backend_->scatter(outputs, inputs, options); });
  }

  Pending all_gather(std::vector<at::Tensor> into, at::Tensor mine) override {
    if (!takes(mine)) return inner_->all_gather(std::move(into), mine);
    std::vector<std::vector<at::Tensor>> outputs{as_bytes(into)};
    std::vector<at::Tensor> inputs{as_bytes(mine)};
    return start("all_gather", [&] { return backend_->allgather(outputs, inputs); });
  }

  Pending send(at::Tensor tensor, int to, int tag) override { return inner_->send(tensor, to, tag); }
  Pending receive(at::Tensor into, int from, int tag) override { return inner_->receive(into, from, tag); }
  void barrier() override { inner_->barrier(); }
  at::Tensor room(int64_t count, at::ScalarType type) override { return inner_->room(count, type); }
  at::Tensor common(int64_t count, at::ScalarType type) override { return inner_->common(count, type); }
  Pending sum_into(at::Tensor total, at::Tensor mine) override { return inner_->sum_into(total, mine); }
  Pending sum_rows_into(at::Tensor total, at::Tensor mine, at::Tensor in_use, at::Tensor numbers) override {
    return inner_->sum_rows_into(total, mine, in_use, numbers);
  }

  std::unique_ptr<Group> split(int color, int key) override {
    const std::vector<int> ranks = members(*inner_, color, key);
    const int64_t number = splits_++;
    std::unique_ptr<Group> part = inner_->split(color, key);
    if (ranks.size() == 1) return part;
    NcclPlace place = place_;
    place.prefix = fmt::format("{}/{}/{}", place_.prefix, number, color);
    place.rank = part->rank();
    place.size = part->size();
    return std::make_unique<NcclGroup>(std::move(part),
                                       std::make_shared<Waits>(waits_->lifeline(), waits_->timeout()), place);
  }

  void set_timeout(milliseconds timeout) override {
    inner_->set_timeout(timeout);
    waits_->set_timeout(timeout);
  }

 private:
  bool takes(const at::Tensor& tensor) const {
    if (tensor.device() != place_.device || tensor.numel() == 0) return false;
    check(tensor.is_contiguous(), "a group takes contiguous tensors");
    return true;
  }

  template <typename Call>
  Pending start(const char* operation, Call call, std::function<void()> after = {}) {
    waits_->check();
    try {
      return Pending(std::make_unique<NcclOperation>(waits_, operation, call(), std::move(after)));
    } catch (const std::exception& error) {
      waits_->broken(operation, first_line(error.what()));
    }
  }

  std::unique_ptr<Group> inner_;
  std::shared_ptr<Waits> waits_;
  NcclPlace place_;
  Backend backend_;
  int64_t splits_ = 0;
};

}  // namespace

bool has_nccl() { return true; }
void require_nccl() {}

std::unique_ptr<Group> over_nccl(std::unique_ptr<Group> inner, std::shared_ptr<lifeline::Lifeline> lifeline,
                                 milliseconds timeout, c10::Device device) {
  const NcclPlace place{"nccl", device, inner->rank(), inner->size()};
  return std::make_unique<NcclGroup>(std::move(inner), std::make_shared<Waits>(std::move(lifeline), timeout),
                                     place);
}

}  // namespace syncopate::comm
