#include "syncopate/parallel/strategies/hogwild.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/comm/one_gpu/shared_device.h"

namespace syncopate::parallel {
namespace {

// The first bytes of the shared memory; each number on a cache line of its own.
constexpr int64_t kTicket = 0, kStop = 64, kUpdates = 128, kArrays = 192;

int64_t padded(const at::Tensor& array) { return (static_cast<int64_t>(array.nbytes()) + 63) / 64 * 64; }

/// Waits for what this process has asked of the array's device.
void finish_on_device(const at::Tensor& array) {
  if (!array.is_cpu()) array.narrow(0, 0, 1).cpu();
}

}  // namespace

Hogwild::Hogwild(comm::Group& group, Options options) : group_(group), options_(options), staleness_(1) {}

void Hogwild::start(Replica& replica) {
  take_parameters_of_rank_zero(replica, group_);
  std::vector<at::Tensor> arrays{replica.params.values};
  if (options_.share_state) {
    for (const auto& named : replica.optimizer.state()) arrays.push_back(named.tensor);
  }
  int64_t bytes = 0;
  for (const at::Tensor& array : arrays) bytes += padded(array);
  comm::require_one_machine(group_);
  const c10::Device device = replica.params.values.device();
  at::Tensor memory;
  if (!device.is_cpu() && !options_.through_host) {
    memory = group_.size() > 1 ? comm::share_device_memory(group_, device, bytes)
                               : at::empty({bytes}, at::device(device).dtype(at::kByte));
  }
  const bool on_device = memory.defined();
  memory_ = comm::SharedMemory::create(group_, on_device ? kArrays : kArrays + bytes);
  if (!on_device) memory = comm::SharedMemory::tensor(memory_, kArrays, bytes, at::kByte);
  const bool copies = options_.through_host || memory.device() != device;
  if (copies && options_.share_state) {
    throw ConfigError(
        "state=shared needs device memory that processes can share, which this machine does not "
        "give; use state=own");
  }
  place_in(memory, replica, arrays, copies);
}

Settled Hogwild::settle(Replica&) {
  return {.model =
              copied_from_.defined() ? "shared by all workers through host memory" : "shared by all workers"};
}

std::vector<StateTensor> Hogwild::state() {
  return {{.name = "staleness", .tensor = staleness_.tensor(), .when_resized = "staleness is counted anew"}};
}

void Hogwild::resumed(Replica& replica) {
  steps_before_ = replica.optimizer.steps_done();
  if (copied_from_.defined() && group_.rank() == 0) copied_from_.copy_(replica.params.values);
  group_.barrier();
}

void Hogwild::place_in(const at::Tensor& memory, Replica& replica, const std::vector<at::Tensor>& arrays,
                       bool copies) {
  std::vector<at::Tensor> shared;
  int64_t offset = 0;
  for (const at::Tensor& array : arrays) {
    shared.push_back(
        memory.narrow(0, offset, static_cast<int64_t>(array.nbytes())).view(array.scalar_type()));
    offset += padded(array);
  }
  if (group_.rank() == 0) {
    for (size_t i = 0; i < arrays.size(); ++i) shared[i].copy_(arrays[i]);
    finish_on_device(shared.front());
  }
  group_.barrier();
  if (copies) {
    copied_from_ = shared.front();
    before_ = at::empty_like(replica.params.values);
    return;
  }
  replica.params.move_values(shared.front());
  // The optimizer's own tensors: a handle to one reaches it.
  for (size_t i = 1; i < arrays.size(); ++i) at::Tensor(arrays[i]).set_data(shared[i]);
}

void Hogwild::read(Replica& replica) {
  seen_ = memory_->counter(kUpdates);
  if (!copied_from_.defined()) return;
  before_.copy_(copied_from_);
  replica.params.values.copy_(before_);
}

void Hogwild::open(Replica& replica, int64_t first, int64_t last) {
  first_ = first;
  last_ = last;
  if (group_.rank() == 0) {
    memory_->counter(kTicket) = first;
    memory_->counter(kStop) = 0;
  }
  group_.barrier();
  read(replica);
}

std::optional<int64_t> Hogwild::take(bool stop) {
  if (stop) memory_->counter(kStop) = 1;
  if (memory_->counter(kStop) != 0) return std::nullopt;
  const int64_t number = memory_->counter(kTicket).fetch_add(1);
  return number < last_ ? std::optional<int64_t>(number) : std::nullopt;
}

Update Hogwild::step(Replica& replica, const StepContext& context) {
  const int64_t others = memory_->counter(kUpdates).fetch_add(1) - seen_;
  // Shared moments have seen everybody's updates, and are corrected for as many.
  if (options_.share_state) replica.optimizer.set_steps_done(steps_before_ + seen_ + others);
  const Update update = replica.apply(context);
  if (copied_from_.defined()) copied_from_.add_((replica.params.values - before_).cpu());
  staleness_.count(0, others);
  read(replica);
  return update;
}

int64_t Hogwild::close(Replica& replica) {
  finish_on_device(replica.params.values);
  group_.barrier();
  read(replica);
  if (options_.share_state) replica.optimizer.set_steps_done(steps_before_ + memory_->counter(kUpdates));
  const int64_t taken = std::min<int64_t>(memory_->counter(kTicket), last_) - first_;
  group_.barrier();  // nobody opens the next section before all have read how far this one went
  return taken;
}

std::vector<std::vector<int64_t>> Hogwild::staleness() {
  StalenessHistogram all(group_.size());
  std::vector<at::Tensor> rows;
  for (int rank = 0; rank < group_.size(); ++rank) rows.push_back(all.tensor()[rank]);
  group_.all_gather(rows, staleness_.tensor()[0]).wait();
  return all.counts();
}

}  // namespace syncopate::parallel
