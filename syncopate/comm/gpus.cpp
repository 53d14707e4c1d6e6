#include "syncopate/comm/gpus.h"

#include <ATen/ATen.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "syncopate/base/error.h"
#include "syncopate/comm/nccl.h"
#include "syncopate/comm/one_gpu/one_gpu.h"
#include "syncopate/gpu/graph.h"
#include "syncopate/gpu/shared.h"

namespace syncopate::comm {
namespace {

/// Where a rank computes.
struct Seat {
  int64_t on_gpu = 0;
  int64_t known = 0;           ///< whether `gpu` says which one
  std::array<char, 16> gpu{};  ///< alike in all processes that use it
  uint64_t host = 0;           ///< as NCCL is told, where it is

  auto operator<=>(const Seat&) const = default;
};

/// NCCL takes ranks that were given different NCCL_HOSTIDs for ranks of different hosts, and their GPUs for
/// different ones. So do we: then two ranks on one GPU can do what two GPUs would.
uint64_t host_for_nccl() {
  const char* const told = ::getenv("NCCL_HOSTID");
  return told == nullptr ? 0 : std::hash<std::string_view>()(told);
}

Seat seat_at(c10::Device device) {
  Seat seat;
  seat.on_gpu = device.is_cuda() ? 1 : 0;
  if (!device.is_cuda() || !gpu::built()) return seat;
  seat.known = 1;
  seat.gpu = gpu::identity(device);
  seat.host = host_for_nccl();
  return seat;
}

/// Everybody's, by rank. Collective.
std::vector<Seat> seats_of(Group& group, const Seat& mine) {
  const auto bytes = static_cast<int64_t>(sizeof(Seat));
  const at::Tensor told = at::empty({bytes}, at::kByte), all = at::empty({group.size(), bytes}, at::kByte);
  std::memcpy(told.data_ptr(), &mine, sizeof mine);
  group.all_gather(all.unbind(0), told).wait();
  std::vector<Seat> seats(static_cast<size_t>(group.size()));
  std::memcpy(seats.data(), all.data_ptr(), seats.size() * sizeof(Seat));
  return seats;
}

int rank_where(const std::vector<Seat>& seats, bool on_gpu) {
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    if ((seats[rank].on_gpu != 0) == on_gpu) return static_cast<int>(rank);
  }
  return -1;
}

/// The first two ranks that share a GPU.
std::optional<std::pair<int, int>> sharing(const std::vector<Seat>& seats) {
  std::map<Seat, int> taken;
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    const auto [found, is_new] = taken.emplace(seats[rank], static_cast<int>(rank));
    if (!is_new) return std::pair(found->second, static_cast<int>(rank));
  }
  return std::nullopt;
}

bool all_known(const std::vector<Seat>& seats) {
  return std::all_of(seats.begin(), seats.end(), [](const Seat& seat) { return seat.known != 0; });
}

bool all_share_one(const std::vector<Seat>& seats) {
  return std::all_of(seats.begin(), seats.end(),
                     [&](const Seat& seat) { return seat == seats.front(); });
}

/// Alike on all ranks, since all see the same seats.
void require_gpus_for_nccl(const std::vector<Seat>& seats) {
  require_nccl();
  if (seats.front().on_gpu == 0)
    throw ConfigError("the backend nccl is for workers on GPUs; use --device cuda or the backend auto");
  if (const auto two = sharing(seats)) {
    throw ConfigError(
        "ranks {} and {} share a GPU, which NCCL does not allow; use the backend auto, or as many GPUs as "
        "workers",
        two->first, two->second);
  }
}

}  // namespace

void use_gpus(Membership& membership, c10::Device device, const std::string& backend,
              std::chrono::milliseconds timeout) {
  if (membership.group->size() == 1) return;
  const std::vector<Seat> seats = seats_of(*membership.group, seat_at(device));
  const int on_gpu = rank_where(seats, true), on_cpu = rank_where(seats, false);
  if (on_gpu >= 0 && on_cpu >= 0) {
    throw ConfigError("rank {} computes on a GPU and rank {} on a CPU; give all the same --device", on_gpu,
                      on_cpu);
  }
  if (backend == "nccl") require_gpus_for_nccl(seats);
  const bool chooses = backend == "auto" || backend == "nccl";
  if (!chooses || !membership.lifeline || !all_known(seats))
    return;  // threads of one process have no lifeline
  if (all_share_one(seats)) {
    membership.group = on_one_gpu(std::move(membership.group));
  } else if (has_nccl() && !sharing(seats)) {
    membership.group = over_nccl(std::move(membership.group), membership.lifeline, timeout, device);
    membership.backend = "nccl";
  }
}

}  // namespace syncopate::comm
