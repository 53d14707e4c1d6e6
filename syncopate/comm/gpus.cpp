#include "syncopate/comm/gpus.h"

#include <ATen/ATen.h>
#include <stdlib.h>

#include <cstring>
#include <functional>
#include <string_view>

#include "syncopate/comm/gpu_seats.h"
#include "syncopate/comm/nccl.h"
#include "syncopate/comm/one_gpu/one_gpu.h"
#include "syncopate/gpu/graph.h"
#include "syncopate/gpu/shared.h"

namespace syncopate::comm {
namespace {

/// NCCL takes ranks that were given different NCCL_HOSTIDs for ranks of different hosts, and their GPUs for
/// different ones. So do we: then two ranks on one GPU can do what two GPUs would.
uint64_t host_for_nccl() {
  const char* const told = ::getenv("NCCL_HOSTID");
  return told == nullptr ? 0 : std::hash<std::string_view>()(told);
}

GpuSeat seat_at(c10::Device device) {
  GpuSeat seat;
  seat.on_gpu = device.is_cuda() ? 1 : 0;
  if (!device.is_cuda() || !gpu::built()) return seat;
  seat.known = 1;
  seat.gpu = gpu::identity(device);
  seat.host = host_for_nccl();
  return seat;
}

/// Everybody's, by rank. Collective.
std::vector<GpuSeat> seats_of(Group& group, const GpuSeat& mine) {
  const auto bytes = static_cast<int64_t>(sizeof(GpuSeat));
  const at::Tensor told = at::empty({bytes}, at::kByte), all = at::empty({group.size(), bytes}, at::kByte);
  std::memcpy(told.data_ptr(), &mine, sizeof mine);
  group.all_gather(all.unbind(0), told).wait();
  std::vector<GpuSeat> seats(static_cast<size_t>(group.size()));
  std::memcpy(seats.data(), all.data_ptr(), seats.size() * sizeof(GpuSeat));
  return seats;
}

}  // namespace

void use_gpus(Membership& membership, c10::Device device, const std::string& backend,
              std::chrono::milliseconds timeout) {
  if (membership.group->size() == 1) return;
  if (backend == "nccl") require_nccl();
  const GpuWay way = way_between(seats_of(*membership.group, seat_at(device)), backend, has_nccl());
  if (!membership.lifeline) return;  // threads of one process
  if (way == GpuWay::kOneGpu) {
    membership.group = on_one_gpu(std::move(membership.group));
    membership.backend = kOneGpuBackend;
  } else if (way == GpuWay::kNccl) {
    membership.group = over_nccl(std::move(membership.group), membership.lifeline, timeout, device);
    membership.backend = "nccl";
  }
}

}  // namespace syncopate::comm
