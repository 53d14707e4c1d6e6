#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/codec/codec.h"
#include "syncopate/comm/group.h"
#include "syncopate/parallel/noise_scale.h"
#include "syncopate/parallel/server/server_client.h"
#include "syncopate/parallel/strategies/diloco.h"
#include "syncopate/parallel/strategies/free_running.h"
#include "syncopate/parallel/strategies/hogwild.h"
#include "syncopate/parallel/strategies/overlapped.h"
#include "syncopate/parallel/strategy.h"

// From names to objects: read make.cpp to know which strategies and codecs there are.
namespace syncopate::parallel {

/// What is exchanged goes through this codec.
struct CompressionOptions {
  std::string codec = "none";            ///< one of compression_names()
  double ratio = 0.01;                   ///< top-k, random-k: fraction of the elements that is sent
  int64_t rank = 4;                      ///< power-sgd
  int64_t warmup = 0;                    ///< one-bit, power-sgd: steps that are not compressed
  std::optional<bool> error_feedback{};  ///< not set: where the codec needs it
  bool one_bit_adam = true;              ///< one-bit: the optimizer is AdamW, so that this is 1-bit Adam
  /// Makes a codec of one's own, in the place of `codec`; kept errors are fed back unless told otherwise.
  std::function<std::unique_ptr<codec::Codec>()> own{};
};

/// A strategy by name and the options of all; each heeds its own.
struct StrategyOptions {
  std::string name = "ddp";  ///< one of strategy_names()
  CompressionOptions compression{};
  bool whole = false;  ///< gather-scatter, all-reduce: one call over all gradients
  /// all-reduce, ddp, data-parallel without a codec, where ranks share memory: they keep one set of
  /// parameters and moments and share the update (SharedUpdate). Only where nobody else writes to parameters:
  /// what one rank writes, all have, also after training. A parameter's grad stays this rank's own.
  bool share = false;
  Overlapped::Options buckets{};    ///< ddp, data-parallel, and local-sgd before its first local step
  LocalSteps::Options local{};      ///< local-sgd, diloco
  DiLoCo::OuterRound outer{};       ///< diloco
  Hogwild::Options hogwild{};       ///< hogwild
  ServerClient::Options client{};   ///< parameter-server
  bool synchronous_server = false;  ///< parameter-server: every update is made of all workers' gradients
  /// Strategies that average gradients in every step: looks at them; null: nobody does. Must outlive the
  /// strategy.
  NoiseScale* noise_scale = nullptr;
};

struct MadeStrategy {
  std::unique_ptr<Strategy> strategy;
  FreeRunning* free = nullptr;  ///< the same, where its workers do not keep in step
};

/// `replicas` must outlive the strategy; so must `with_servers`, the group of all workers and then all
/// servers, which a parameter server needs. Throws ConfigError.
MadeStrategy make_strategy(const StrategyOptions& options, comm::Group& replicas,
                           comm::Group* with_servers = nullptr);

std::vector<std::string> strategy_names();
std::vector<std::string> compression_names();
/// Whether the codec of that name keeps what it lost, unless told otherwise.
bool feeds_back(const std::string& codec);
bool keeps_errors(const CompressionOptions& options);  ///< the same, as told

}  // namespace syncopate::parallel
