#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::comm {

/// Where a rank computes.
struct GpuSeat {
  int64_t on_gpu = 0;
  int64_t known = 0;           ///< whether `gpu` says which one
  std::array<char, 16> gpu{};  ///< alike in all processes that use it
  uint64_t host = 0;           ///< as NCCL is told, where it is

  auto operator<=>(const GpuSeat&) const = default;
};

/// How ranks exchange what lies on their GPUs.
enum class GpuWay {
  kHost,    ///< through the host's memory
  kOneGpu,  ///< within the memory of the one GPU that all share
  kNccl,    ///< each has a GPU of its own
};

/// The way for ranks at these seats, by rank, where `backend` was asked for; `nccl`: whether it is built in.
/// Throws ConfigError where some ranks have a GPU and others none, and for the backend nccl where it cannot
/// be used.
GpuWay way_between(const std::vector<GpuSeat>& seats, const std::string& backend, bool nccl);

}  // namespace syncopate::comm
