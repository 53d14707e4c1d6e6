#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/network/topology.h"

namespace syncopate::network {

struct ImportOptions {
  std::vector<std::filesystem::path> files{};
  std::vector<std::string> regions{};  ///< which; empty: all there are
  int hosts_per_region = 1;
  std::optional<Link> inside{};  ///< between hosts of one region where the files do not say
  std::string name = "imported";
};

/// A network from tables of measurements (CSV), told apart by their header:
/// - pairs of regions: region_a, region_b, delay_ms (one way), bandwidth_gbps;
/// - Skyplane's throughput between regions of clouds: src_region, dst_region, throughput_received (bits a
///   second), and its latencies: src_region, dst_region, avg_rtt (ms, there and back). Of rows that differ in
///   the tiers of the clouds' networks those with the premium tier at both ends count; of several the median;
/// - a square matrix with regions along both edges, whose first cell says what it holds: latency_ms (one way)
///   or gbit.
/// A region may be named without its cloud ("us-east-1") where that is clear. Throws DataError for what the
/// files do not hold, ConfigError for regions that they do not have.
Topology import_csv(const ImportOptions& options);

}  // namespace syncopate::network
