#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/network/topology.h"
#include "syncopate/sim/predict.h"
#include "syncopate/spec/run_spec.h"

// Which strategy, codec and number of workers is fastest on a network, by prediction: speed only.
namespace syncopate::plan {

struct AdviceRequest {
  spec::RunSpec base{};            ///< task, model, optimizer, global batch, and settings that hold for all
  network::Topology topology{};    ///< scaled already
  std::vector<int64_t> workers{};  ///< ascending
  std::map<int64_t, sim::Profile> profiles{};  ///< by number of workers; the nearest is used for others
  bool one_machine = false;                    ///< as sim::Scene's
};

/// What was measured of a row.
struct Checked {
  double ms = 0, compute_ms = 0, exchange_ms = 0, examples_per_s = 0, bytes_per_step = 0;
  bool trustworthy = true;  ///< false: the machine was too busy to emulate the network well
};

struct AdviceRow {
  spec::RunSpec spec{};
  std::vector<int> hosts{};  ///< that take part
  sim::Prediction predicted{};
  double price_epoch = 0;  ///< 0: not known
  bool worth_it = false;
  std::string why{};  ///< one sentence
  std::optional<Checked> measured{};
  std::string failed{};  ///< why it could not be measured

  /// (predicted - measured) / measured; of one that was measured.
  double error() const { return predicted.ms / measured->ms - 1; }
};

struct Advice {
  std::vector<AdviceRow> rows{};        ///< the fastest first
  size_t alone = 0;                     ///< the row of one worker
  std::vector<std::string> left_out{};  ///< what cannot run, and why

  /// Of the absolute errors of what was measured on a machine that kept up; empty: nothing was.
  std::optional<double> error_at(double share) const;
};

/// Every strategy and codec that can run, for each number of workers and for one. Throws ConfigError where
/// nothing can.
Advice advise(const AdviceRequest& request);

/// Which rows a check runs: the `best`, plain ddp and the worst, each once.
std::vector<size_t> rows_to_check(const Advice& advice, size_t best);

/// advice.json (docs/formats/advice.md).
nlohmann::ordered_json to_json(const Advice& advice, const AdviceRequest& request);

}  // namespace syncopate::plan
