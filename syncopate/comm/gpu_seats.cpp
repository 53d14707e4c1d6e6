#include "syncopate/comm/gpu_seats.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "syncopate/base/error.h"

namespace syncopate::comm {
namespace {

int rank_where(const std::vector<GpuSeat>& seats, bool on_gpu) {
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    if ((seats[rank].on_gpu != 0) == on_gpu) return static_cast<int>(rank);
  }
  return -1;
}

/// The first two ranks that share a GPU.
std::optional<std::pair<int, int>> sharing(const std::vector<GpuSeat>& seats) {
  std::map<GpuSeat, int> taken;
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    const auto [found, is_new] = taken.emplace(seats[rank], static_cast<int>(rank));
    if (!is_new) return std::pair(found->second, static_cast<int>(rank));
  }
  return std::nullopt;
}

}  // namespace

GpuWay way_between(const std::vector<GpuSeat>& seats, const std::string& backend, bool nccl) {
  const int on_gpu = rank_where(seats, true), on_cpu = rank_where(seats, false);
  if (on_gpu >= 0 && on_cpu >= 0) {
    throw ConfigError("rank {} computes on a GPU and rank {} on a CPU; give all the same --device", on_gpu,
                      on_cpu);
  }
  const auto two = sharing(seats);
  if (backend == "nccl") {
    if (on_gpu < 0)
      throw ConfigError("the backend nccl is for workers on GPUs; use --device cuda or the backend auto");
    if (two) {
      throw ConfigError(
          "ranks {} and {} share a GPU, which NCCL does not allow; use the backend auto, or as many GPUs as "
          "workers",
          two->first, two->second);
    }
  }
  const bool all_known =
      std::all_of(seats.begin(), seats.end(), [](const GpuSeat& seat) { return seat.known != 0; });
  if ((backend != "auto" && backend != "nccl") || !all_known) return GpuWay::kHost;
  const bool one =
      std::all_of(seats.begin(), seats.end(), [&](const GpuSeat& seat) { return seat == seats.front(); });
  if (one) return GpuWay::kOneGpu;
  return nccl && !two ? GpuWay::kNccl : GpuWay::kHost;
}

}  // namespace syncopate::comm
