#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "syncopate/network/topology.h"

// What is to be placed and where: a pipeline of `stages`, each held by `replicas` devices that average its
// gradient.
namespace syncopate::plan {

/// Devices, stages and replicas are counted in int: their place in a vector.
inline size_t at(int index) { return static_cast<size_t>(index); }

/// From one device to another.
struct Pair {
  double delay_s = 0;
  double s_per_gb = 0;
};

/// Pair of every two devices.
class Pairs {
 public:
  Pairs() = default;
  explicit Pairs(int devices)
      : devices_(devices), pairs_(static_cast<size_t>(devices) * static_cast<size_t>(devices)) {}
  int devices() const { return devices_; }
  const Pair& at(int from, int to) const { return pairs_[index(from, to)]; }
  Pair& at(int from, int to) { return pairs_[index(from, to)]; }

 private:
  size_t index(int from, int to) const {
    return static_cast<size_t>(from) * static_cast<size_t>(devices_) + static_cast<size_t>(to);
  }
  int devices_ = 0;
  std::vector<Pair> pairs_;
};

/// Delay and rate as the mean of both directions: DT-FM's (Yuan et al. 2022, section 3.1).
Pairs symmetric_pairs(const network::Topology& topology);
/// Each direction as it is.
Pairs directed_pairs(const network::Topology& topology);

/// How numbers travel.
struct Coding {
  std::string name = "none";
  double bits = 32;     ///< for a number that has 32, scales included
  double s_per_gb = 0;  ///< packing and unpacking, per GB of fp32
};

/// Seconds on a device of speed 1, for one micro-batch.
struct StageWork {
  double forward_s = 0, backward_s = 0;
  double update_s = 0;  ///< the optimizer's, once in an iteration
};

/// Sizes are GB, 10^9 bytes, of fp32. With no work, one coding that costs nothing and one micro-batch, the
/// cost is DT-FM's of the same pairs: with symmetric_pairs always, with directed_pairs where links are alike
/// in both directions. Elsewhere a mean of rates is not a mean of times, and DT-FM's is too fast.
struct Problem {
  int stages = 1, replicas = 1;
  Pairs pairs{};
  std::vector<double> speed{};        ///< of each device
  std::vector<double> gradient_gb{};  ///< of each stage
  std::vector<double> cut_gb{};  ///< activations behind each stage but the last, of one replica's micro-batch
  std::vector<StageWork> work{};
  Coding gradient{};
  Coding forward{}, backward{};  ///< of every link between stages
  int micro_batches = 1;
  bool overlap = true;  ///< transfers run while devices compute
  /// What of a backward pass a gradient's exchange may hide behind: all but the last bucket's part.
  double hidden_share = 0;

  int devices() const { return pairs.devices(); }
  int places() const { return stages * replicas; }
};

/// Who does what: the device at `stage` and `replica`.
struct Layout {
  int stages = 1, replicas = 1;
  std::vector<int> device{};  ///< stage by stage
  int at(int stage, int replica) const {
    return device[static_cast<size_t>(stage) * static_cast<size_t>(replicas) + static_cast<size_t>(replica)];
  }
  bool operator==(const Layout&) const = default;
};

struct Cost {
  double total_s = 0;          ///< compute_s + pipeline_s + data_parallel_s
  double data_parallel_s = 0;  ///< of the slowest stage, what is not hidden
  double pipeline_s = 0;       ///< waiting for activations and their gradients
  double compute_s = 0;
  double hidden_s = 0;  ///< of the slowest stage's exchange, behind its backward pass
  /// The mean where total_s takes the slowest: tells layouts apart that tie.
  double mean_s = 0;
};

/// Seconds for which `gb` of fp32 keep a link busy, packing included.
double busy_s(const Coding& coding, double gb, double s_per_gb);

/// What an iteration takes. Data-parallel: every device sends its shards to the others of its stage and gets
/// them back, one after the other; the slowest device of the slowest stage counts. Pipeline: the slowest
/// replica's link between any two stages, forward and backward, and for every further micro-batch the beat of
/// the slowest part.
Cost evaluate(const Problem& problem, const Layout& layout);

}  // namespace syncopate::plan
