#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/plan/job.h"
#include "syncopate/plan/search.h"

namespace syncopate::plan {

struct Request {
  network::Topology topology{};
  std::string cluster{};  ///< the file or preset that it was loaded from, for the record; empty: neither
  double scale = 1;       ///< as the topology was scaled; for the record
  Job job{};
  bool published = false;  ///< DT-FM's cost: links as means of both directions
  std::optional<int> stages{}, replicas{}, micro_batches{};
  Codings codings{};
  bool overlap = true;
  double memory_gib = 0;  ///< of devices whose cluster file does not say; 0: not known
  Effort effort{};
};

/// What one device sends another in an iteration.
struct Traffic {
  int from = 0, to = 0;
  double bytes = 0;
  bool gradients = false;  ///< else activations, or their gradients
};

struct Plan {
  Request request{};
  Shape shape{};
  Problem problem{};
  Layout layout{};
  Cost cost{};
  std::vector<int> split{};  ///< the first layer of each stage
  std::vector<Memory> memory{};
  std::vector<Traffic> traffic{};
  double random_s = 0;                  ///< mean of 2,000 random layouts
  double region_blind_s = 0;            ///< mean over shuffled hosts, pairs and order the best
  double one_device_s = 0;              ///< the fastest device alone; 0: not known
  double played_out_s = 0;              ///< the same iteration, event by event (sim/predict.h); 0: not played
  int fewest_devices = 0;               ///< that hold the model and a batch, of any shape; 0: not known
  double epoch_s = 0, epoch_price = 0;  ///< 0: not known
  int64_t moves = 0;
};

/// Chooses what the request leaves open. Throws ConfigError for what cannot be: more stages than layers, more
/// places than devices, a model that fits on no device.
Plan make_plan(const Request& request);

nlohmann::ordered_json to_json(const Plan& plan);
/// For a terminal.
std::string to_text(const Plan& plan);
/// A map: hosts by region, the stage of each in its colour, links as wide as they carry bytes.
std::string to_svg(const Plan& plan);

}  // namespace syncopate::plan
