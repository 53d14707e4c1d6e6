#include "syncopate/parallel/make.h"

#include <algorithm>
#include <utility>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/codec/codec.h"
#include "syncopate/parallel/averagers/all_reduce.h"
#include "syncopate/parallel/averagers/coded.h"
#include "syncopate/parallel/averagers/gather_scatter.h"
#include "syncopate/parallel/averagers/low_rank.h"
#include "syncopate/parallel/server/parameter_server.h"
#include "syncopate/parallel/strategies/every_step.h"
#include "syncopate/parallel/strategies/local_sgd.h"
#include "syncopate/parallel/strategies/one_bit.h"

namespace syncopate::parallel {
namespace {

/// What is averaged: gradients come in the loss scale, parameters and their differences do not.
enum class Averaged { kGradients, kParameters };

using AveragerPtr = std::unique_ptr<Averager>;

struct Compression {
  const char* name;
  bool feeds_back;
  AveragerPtr (*make)(const CompressionOptions&, comm::Group&, Averaged);
};

AveragerPtr make_plain(const CompressionOptions&, comm::Group& group, Averaged) {
  return std::make_unique<AllReduce>(group);
}

AveragerPtr make_coded(const CompressionOptions& options, std::unique_ptr<codec::Codec> codec,
                       comm::Group& group, Averaged what) {
  return std::make_unique<Coded>(
      group, std::move(codec),
      Coded::Options{.error_feedback = keeps_errors(options), .scaled = what == Averaged::kGradients});
}

AveragerPtr make_by_elements(const CompressionOptions& options, comm::Group& group, Averaged what) {
  return make_coded(options, codec::make_codec({.name = options.codec, .ratio = options.ratio}), group, what);
}

AveragerPtr make_by_signs(const CompressionOptions& options, comm::Group& group, Averaged what) {
  return make_coded(options, codec::make_codec({.name = "sign"}), group, what);
}

AveragerPtr make_low_rank(const CompressionOptions& options, comm::Group& group, Averaged what) {
  return std::make_unique<LowRank>(group, LowRank::Options{.rank = options.rank,
                                                           .error_feedback = keeps_errors(options),
                                                           .scaled = what == Averaged::kGradients,
                                                           .warmup = options.warmup});
}

constexpr Compression kCompressions[] = {
    {"none", false, make_plain},          {"fp16", false, make_by_elements},
    {"bf16", false, make_by_elements},    {"int8", true, make_by_elements},
    {"int4", true, make_by_elements},     {"top-k", true, make_by_elements},
    {"random-k", true, make_by_elements}, {"power-sgd", true, make_low_rank},
    {"one-bit", true, make_by_signs},
};

const Compression& find_compression(const std::string& codec) {
  for (const Compression& each : kCompressions) {
    if (codec == each.name) return each;
  }
  throw ConfigError("unknown codec \"{}\"{}", codec, suggestion(codec, compression_names()));
}

AveragerPtr make_averager(const CompressionOptions& options, comm::Group& group, Averaged what) {
  if (options.own) return make_coded(options, options.own(), group, what);
  return find_compression(options.codec).make(options, group, what);
}

bool compresses(const CompressionOptions& options) {
  return options.own != nullptr || find_compression(options.codec).make != make_plain;
}

/// Where a strategy is made.
struct Place {
  const StrategyOptions& options;
  comm::Group& group;
  comm::Group* with_servers;
};

MadeStrategy in_step(std::unique_ptr<Strategy> strategy) { return {std::move(strategy), nullptr}; }

MadeStrategy run_free(std::unique_ptr<FreeRunning> strategy) {
  FreeRunning* const free = strategy.get();
  return {std::move(strategy), free};
}

/// For gradients: the averager, which lets the noise scale look first if that is measured.
AveragerPtr looked_at(const Place& place, AveragerPtr averager) {
  NoiseScale* const scale = place.options.noise_scale;
  return scale != nullptr ? scale->looking(std::move(averager)) : std::move(averager);
}

MadeStrategy make_single(const Place&) { return in_step(std::make_unique<Single>()); }

MadeStrategy make_gather_scatter(const Place& place) {
  return in_step(std::make_unique<EveryStep>(place.group,
                                             looked_at(place, std::make_unique<GatherScatter>(place.group)),
                                             EveryStep::Options{.whole = place.options.whole}));
}

/// Steps in which all make the same update. With AdamW, one bit is a strategy of its own, which begins with
/// plain steps.
template <typename MakeInner>
MadeStrategy make_common_steps(const Place& place, const MakeInner& make_inner) {
  const CompressionOptions& compression = place.options.compression;
  const bool one_bit_adam = !compression.own && compression.one_bit_adam &&
                            find_compression(compression.codec).make == make_by_signs;
  if (!one_bit_adam) {
    AveragerPtr averager = place.options.share && !compresses(compression)
                               ? std::make_unique<AllReduce>(place.group, true)
                               : make_averager(compression, place.group, Averaged::kGradients);
    return in_step(make_inner(looked_at(place, std::move(averager))));
  }
  return in_step(std::make_unique<OneBit>(
      place.group, make_inner(std::make_unique<AllReduce>(place.group)),
      OneBit::Options{.warmup = compression.warmup, .error_feedback = keeps_errors(compression)}));
}

MadeStrategy make_all_reduce(const Place& place) {
  return make_common_steps(place, [&](AveragerPtr averager) {
    return std::make_unique<EveryStep>(place.group, std::move(averager),
                                       EveryStep::Options{.whole = place.options.whole});
  });
}

MadeStrategy make_ddp(const Place& place) {
  return make_common_steps(place, [&](AveragerPtr averager) {
    return std::make_unique<Overlapped>(place.group, std::move(averager), place.options.buckets);
  });
}

MadeStrategy make_local_sgd(const Place& place) {
  const StrategyOptions& options = place.options;
  std::unique_ptr<Strategy> before;
  if (options.local.first > 0) {
    before = std::make_unique<Overlapped>(
        place.group, make_averager(options.compression, place.group, Averaged::kGradients), options.buckets);
  }
  return in_step(std::make_unique<LocalSgd>(
      place.group, make_averager(options.compression, place.group, Averaged::kParameters), options.local,
      compresses(options.compression), std::move(before)));
}

MadeStrategy make_diloco(const Place& place) {
  const StrategyOptions& options = place.options;
  return in_step(std::make_unique<DiLoCo>(
      place.group, make_averager(options.compression, place.group, Averaged::kParameters), options.local,
      options.outer));
}

MadeStrategy make_hogwild(const Place& place) {
  return run_free(std::make_unique<Hogwild>(place.group, place.options.hogwild));
}

MadeStrategy make_parameter_server(const Place& place) {
  check(place.with_servers != nullptr, "a parameter server is among the ranks");
  const ServerClient::Options& options = place.options.client;
  if (place.options.synchronous_server) {
    return in_step(std::make_unique<LockstepServer>(*place.with_servers, place.group, options));
  }
  return run_free(std::make_unique<ParameterServer>(*place.with_servers, place.group, options));
}

struct Maker {
  const char* name;
  MadeStrategy (*make)(const Place&);
};

constexpr Maker kMakers[] = {
    {"single", make_single},
    {"gather-scatter", make_gather_scatter},
    {"all-reduce", make_all_reduce},
    {"ddp", make_ddp},
    {"data-parallel", make_ddp},
    {"local-sgd", make_local_sgd},
    {"diloco", make_diloco},
    {"hogwild", make_hogwild},
    {"parameter-server", make_parameter_server},
};

}  // namespace

MadeStrategy make_strategy(const StrategyOptions& options, comm::Group& replicas, comm::Group* with_servers) {
  for (const Maker& maker : kMakers) {
    if (options.name == maker.name) return maker.make({options, replicas, with_servers});
  }
  throw ConfigError("unknown strategy \"{}\"{}", options.name, suggestion(options.name, strategy_names()));
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) names.emplace_back(maker.name);
  return names;
}

std::vector<std::string> compression_names() {
  std::vector<std::string> names;
  for (const Compression& each : kCompressions) names.emplace_back(each.name);
  return names;
}

bool feeds_back(const std::string& codec) { return find_compression(codec).feeds_back; }

bool keeps_errors(const CompressionOptions& options) {
  return options.error_feedback.value_or(options.own || feeds_back(options.codec));
}

}  // namespace syncopate::parallel
