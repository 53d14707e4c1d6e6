#include "syncopate/library/session_parts.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/comm/together/agree.h"
#include "syncopate/optim/remote_optimizer.h"
#include "syncopate/run/device.h"
#include "syncopate/spec/strategies.h"

namespace syncopate {
namespace {

parallel::StrategyOptions strategy_options(const SessionOptions& options) {
  return options.strategy.options([](const std::string& name) {
    parallel::StrategyOptions made;
    made.name = name;
    return made;
  });
}

optim::OptimizerOptions optimizer_options(const SessionOptions& options) {
  return options.optimizer.options([](const std::string& name) {
    optim::OptimizerOptions made;
    made.kind = name;
    return made;
  });
}

/// The codec of the session, or else the one among the strategy's own options.
parallel::CompressionOptions compression_options(const SessionOptions& options) {
  parallel::CompressionOptions made;
  if (options.codec.own() != nullptr) {
    made.own = *options.codec.own();
    return made;
  }
  made = options.codec.options([](const std::string& name) {
    parallel::CompressionOptions named;
    named.codec = name;
    return named;
  });
  if (made.codec == "none" && options.strategy.own() == nullptr) made = strategy_options(options).compression;
  return made;
}

c10::Device device_of(const SessionOptions& options, const World& world) {
  const auto* device = std::get_if<c10::Device>(&options.device);
  if (device != nullptr && (device->has_index() || !device->is_cuda())) return *device;
  // torch::kCUDA is any GPU, as "cuda" is.
  const std::string name = device != nullptr ? "cuda" : std::get<std::string>(options.device);
  return run::parse_device(name, world.local_rank());
}

tensor::Precision precision_of(const SessionOptions& options) {
  if (const auto* precision = std::get_if<tensor::Precision>(&options.precision)) return *precision;
  return tensor::parse_precision(std::get<std::string>(options.precision));
}

/// Of what is known by name: throws ConfigError where parts do not fit together.
void require_fit(const SessionOptions& options, int ranks) {
  const parallel::CompressionOptions compression = compression_options(options);
  const spec::CodecInfo& codec = spec::codec_info(compression.codec);
  const bool coded = compression.own || codec.packing != spec::Packing::kNone;
  if (!(options.clip >= 0)) throw ConfigError("clip must be 0 or more, got {}", options.clip);
  if (options.strategy.own() != nullptr) {
    if (coded) throw ConfigError("a strategy of one's own brings its codec with it; leave codec at none");
    return;
  }
  const spec::StrategyInfo& strategy = spec::strategy_info(strategy_options(options).name);
  if (strategy.has_servers && (options.servers < 1 || options.servers >= ranks)) {
    throw ConfigError("servers must be 1 or more and leave at least one of the {} ranks to train, got {}",
                      ranks, options.servers);
  }
  if (options.staleness < -1)
    throw ConfigError("staleness must be -1 (any), 0 or more, got {}", options.staleness);
  const int workers = ranks - servers_of(options);
  if (strategy.one_worker && workers > 1) {
    throw ConfigError("the strategy {} is for one worker, but there are {}; use ddp", strategy.name, workers);
  }
  if (coded && !strategy.takes_codec) {
    throw ConfigError("the strategy {} cannot use a codec; use ddp, or the codec none", strategy.name);
  }
  const bool own_optimizer = options.optimizer.own() != nullptr;
  if (strategy.has_servers && own_optimizer) {
    throw ConfigError("the strategy {} makes its optimizer on the servers: give its name or options",
                      strategy.name);
  }
  if (codec.packing == spec::Packing::kSigns && strategy.rhythm == spec::Rhythm::kLocal) {
    throw ConfigError("the codec {} cannot be used with {}; use int4", codec.name, strategy.name);
  }
  if (!codec.holds_loss_scale && precision_of(options) == tensor::Precision::kFp16 &&
      !strategy.sends_parameters) {
    throw ConfigError("the codec {} cannot hold the scaled gradients of the precision fp16; use bf16",
                      codec.name);
  }
  if (own_optimizer) return;
  const spec::OptimizerInfo& optimizer = spec::optimizer_info(optimizer_options(options).kind);
  if (codec.packing == spec::Packing::kSigns && !optimizer.supports_one_bit) {
    throw ConfigError("the codec {} cannot be used with the optimizer {}; use adamw", codec.name,
                      optimizer.name);
  }
}

/// Throws ConfigError for what cannot be trained.
void require_trainable(const nn::Model& model) {
  for (const auto& tensors : {model.buffers(), model.constants()}) {
    for (const auto& [name, tensor] : tensors) {
      if (!tensor.is_contiguous())
        throw ConfigError("{} is not contiguous, so that ranks cannot exchange it; register {}.contiguous()",
                          name, name);
    }
  }
  const std::vector<tensor::NamedTensor> parameters = model.parameters();
  if (parameters.empty())
    throw ConfigError(
        "the module has no parameters that require a gradient; register some, or unfreeze them");
  const auto& [first_name, first] = parameters.front();
  struct Range {
    const char* begin;
    const char* end;
    const std::string* name;
  };
  std::vector<Range> ranges;
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.is_floating_point() || parameter.dtype() != first.dtype()) {
      throw ConfigError(
          "all parameters must be of one floating type, but {} is {} and {} is {}; convert the module with "
          "to()",
          first_name, c10::toString(first.scalar_type()), name, c10::toString(parameter.scalar_type()));
    }
    const auto* begin = static_cast<const char*>(parameter.data_ptr());
    ranges.push_back({begin, begin + parameter.nbytes(), &name});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin >= ranges[i - 1].end) continue;
    throw ConfigError(
        "the parameters {} and {} share memory without being one tensor; register the same tensor under both "
        "names, or clone one",
        *ranges[i - 1].name, *ranges[i].name);
  }
}

void describe(const parallel::StrategyOptions& options, std::string& text) {
  const auto& [rounds, first, moments] = options.local;
  text += fmt::format("the strategy {}\n", options.name);
  text +=
      fmt::format("strategy options whole {}, share {}, bucket_mib {} and {}, sparse_rows {}, overlap {}\n",
                  options.whole, options.share, options.buckets.bucket_mib, options.buckets.first_bucket_mib,
                  options.buckets.sparse_rows, options.buckets.overlap);
  text += fmt::format("local steps: every {}, fragments {}, delay {}, first {}, moments {}\n", rounds.every,
                      rounds.fragments, rounds.delay, first, static_cast<int>(moments));
  text += fmt::format("outer lr {}, momentum {}, nesterov {}, mixing {}\n", options.outer.outer.lr,
                      options.outer.outer.momentum, options.outer.outer.nesterov, options.outer.mixing);
  text += fmt::format("hogwild share_state {}\n", options.hogwild.share_state);
}

void describe(const parallel::CompressionOptions& options, std::string& text) {
  text += fmt::format("the codec {}\n", options.own ? "of one's own" : options.codec);
  text += fmt::format("codec options ratio {}, rank {}, warmup {}, error_feedback {}\n", options.ratio,
                      options.rank, options.warmup, parallel::keeps_errors(options));
}

void describe(const optim::OptimizerOptions& options, std::string& text) {
  text += fmt::format("the optimizer {}\n", options.kind);
  text += fmt::format(
      "optimizer options weight_decay {}, beta1 {}, beta2 {}, eps {}, momentum {}, nesterov {}, "
      "trust {}\n",
      options.weight_decay, options.beta1, options.beta2, options.eps, options.momentum, options.nesterov,
      options.trust);
}

/// What must be alike on all ranks, in lines.
std::string describe(const nn::Model& model, const SessionOptions& options) {
  std::string text;
  if (options.strategy.own() == nullptr) describe(strategy_options(options), text);
  describe(compression_options(options), text);
  if (options.optimizer.own() == nullptr) describe(optimizer_options(options), text);
  text += fmt::format("clip {}\nseed {}\nthe precision {}\n", options.clip, options.seed,
                      tensor::name_of(precision_of(options)));
  text += fmt::format("buffers {}\nservers {}\nstaleness {}\nallow_unused {}\n",
                      options.buffers == parallel::Buffers::kMean ? "kMean" : "kOfRankZero",
                      servers_of(options), options.staleness, options.allow_unused);
  for (const auto& [kind, tensors] : {std::pair{"the parameter", model.parameters()},
                                      {"the buffer", model.buffers()},
                                      {"the frozen parameter", model.constants()}}) {
    for (const auto& [name, tensor] : tensors)
      text += fmt::format("{} {} [{}] {}\n", kind, name, fmt::join(tensor.sizes(), ", "),
                          c10::toString(tensor.scalar_type()));
  }
  return text;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const SessionOptions& options,
                                                 const tensor::FlatParams& params) {
  if (servers_of(options) > 0) return std::make_unique<optim::RemoteOptimizer>();
  if (options.optimizer.own() != nullptr) return (*options.optimizer.own())(params);
  return optim::make_optimizer(optimizer_options(options), params);
}

std::shared_ptr<parallel::Strategy> make_strategy(const SessionOptions& options, comm::Group& workers,
                                                  comm::Group& world, parallel::FreeRunning*& free) {
  if (options.strategy.own() != nullptr) {
    free = dynamic_cast<parallel::FreeRunning*>(options.strategy.own()->get());
    return *options.strategy.own();
  }
  parallel::StrategyOptions made = strategy_options(options);
  made.compression = compression_options(options);
  if (options.optimizer.own() == nullptr) {
    const spec::OptimizerInfo& optimizer = spec::optimizer_info(optimizer_options(options).kind);
    made.compression.one_bit_adam = optimizer.one_bit_adam;
    made.client.whole_tensors = optimizer.whole_tensors;
  }
  made.synchronous_server = options.staleness == 0;
  parallel::MadeStrategy strategy = parallel::make_strategy(made, workers, &world);
  free = strategy.free;
  return std::move(strategy.strategy);
}

/// Ranks may begin apart: of what is not trained, all take rank 0's, on the device.
void start_untrained(nn::Model& model, c10::Device device, comm::Group& workers) {
  for (const auto& tensors : {model.buffers(), model.constants()}) {
    for (const auto& [name, tensor] : tensors) {
      if (tensor.device() != device) tensor.set_data(tensor.to(device));
      if (workers.size() > 1) workers.broadcast(tensor.detach(), 0).wait();
    }
  }
}

}  // namespace

int servers_of(const SessionOptions& options) {
  if (options.strategy.own() != nullptr) return 0;
  return spec::strategy_info(strategy_options(options).name).has_servers ? options.servers : 0;
}

parallel::ShardServerOptions server_options(const SessionOptions& options, int workers) {
  parallel::ShardServerOptions made;
  made.workers = workers;
  made.staleness = options.staleness;
  made.clip = options.clip;
  made.optimizer = optimizer_options(options);
  return made;
}

void require_agreement(const nn::Model& model, const SessionOptions& options, World& world) {
  std::string problem, mine;
  c10::Device device = c10::kCPU;
  try {
    require_fit(options, world.size());
    require_trainable(model);
    device = device_of(options, world);
    mine = describe(model, options);
  } catch (const ConfigError& error) {
    problem = error.what();
  }
  comm::agree(world.group(), mine, problem);
  const int servers = servers_of(options);
  if (servers == 0) world.compute_on(device);  // servers have no part of a GPU
  if (world.rank() < world.size() - servers) run::make_current(device);
}

nlohmann::ordered_json named_options(const SessionOptions& options) {
  nlohmann::ordered_json named = nlohmann::ordered_json::object();
  if (options.strategy.own() == nullptr) named["strategy"] = strategy_options(options).name;
  if (options.codec.own() == nullptr) named["codec"] = compression_options(options).codec;
  if (options.optimizer.own() == nullptr) named["optimizer"] = optimizer_options(options).kind;
  named["seed"] = options.seed;
  return named;
}

void require_loss(const tensor::Loss& loss) {
  const auto refuse = [](const std::string& got) {
    throw ConfigError(
        "a loss must be one number that the session's module has computed, with gradients on; got {}", got);
  };
  if (loss.count < 0) refuse(fmt::format("a count of {}", loss.count));
  if (loss.count == 0) return;
  if (!loss.sum.defined()) refuse("no tensor");
  if (loss.sum.numel() != 1) refuse(fmt::format("{} numbers", loss.sum.numel()));
  if (!loss.sum.requires_grad()) refuse("a number without a gradient");
}

parallel::Gradients SessionEngine::run(parallel::Replica& replica, std::span<const tensor::Batch> micro,
                                       uint64_t noise_key, const parallel::EngineEvents& events) {
  if (!given_) return local_.run(replica, micro, noise_key, events);
  const tensor::Loss& loss = *given_;
  parallel::Gradients made;
  // Which rows of its tables were read, only their owner knows.
  for (const at::Tensor& table : replica.model.row_tables())
    made.rows.push_back({table, at::arange(table.size(0), at::kLong)});
  if (loss.count > 0) made.loss = {loss.sum.item<double>(), loss.count, loss.count};
  if (events.before_backward) events.before_backward(made.loss, made.rows, true);
  if (events.phase) events.phase("backward");
  if (loss.count == 0) return made;
  (replica.loss_scale != nullptr ? loss.sum * replica.loss_scale->value() : loss.sum).backward();
  return made;
}

std::vector<parallel::StateTensor> SessionPart::to_save() {
  const parallel::LocalLoss carried = carried_.empty() ? parallel::LocalLoss{} : carried_.front();
  saved_ = at::tensor({carried.sum, static_cast<double>(carried.count)}, at::kDouble);
  return {{.name = "session.carried", .tensor = saved_}};
}

void SessionPart::require(const nlohmann::ordered_json& values) {
  const auto shown = [](const nlohmann::ordered_json& options, const std::string& name) {
    return options.contains(name) ? options.at(name).dump() : "one of one's own";
  };
  for (const char* name : {"strategy", "codec", "optimizer", "seed"}) {
    const std::string was = shown(values, name), is = shown(expected_, name);
    if (was == is) continue;
    throw ConfigError("a session resumes with the options it began with, but {} was {} and is {} now", name,
                      was, is);
  }
}

void SessionPart::restored(const nlohmann::ordered_json& values, train::Resumption& how) {
  ValuesPart::restored(values, how);
  if (how.resized()) return;
  const double* const saved = saved_.data_ptr<double>();
  carried_ = {{saved[0], static_cast<int64_t>(saved[1])}};
}

SessionParts::SessionParts(std::shared_ptr<nn::Model> of, World& world, const SessionOptions& options)
    : model(std::move(of)),
      part(servers_of(options) > 0 ? world.group().part(0, world.rank()) : nullptr),
      workers(part ? *part : world.group()),
      params(model->parameters(), device_of(options, world)),
      optimizer(make_optimizer(options, params)),
      replica{.model = *model, .params = params, .optimizer = *optimizer, .clip = options.clip},
      strategy(make_strategy(options, workers, world.group(), free)),
      runner(replica, engine, *strategy, parallel::Mesh::of_replicas(workers)) {
  const run::PrecisionChoice choice =
      run::agree_on_precision(precision_of(options), params.values.device(), *model, workers);
  replica.precision = choice.used;
  note = choice.note;
  if (replica.precision == tensor::Precision::kFp16) replica.loss_scale = &loss_scale;
  start_untrained(*model, params.values.device(), workers);
  strategy->start(replica);
}

GradientWatch::GradientWatch(const tensor::FlatParams& params)
    : params_(params), touched_(std::make_shared<std::vector<int64_t>>(params.entries().size(), 0)) {
  for (size_t i = 0; i < params_.entries().size(); ++i) {
    hooks_.push_back(params_.entries()[i].parameter.register_hook(
        [touched = touched_, i](const at::Tensor&) { (*touched)[i] = 1; }));
  }
}

GradientWatch::~GradientWatch() {
  for (size_t i = 0; i < hooks_.size(); ++i) params_.entries()[i].parameter.remove_hook(hooks_[i]);
}

bool GradientWatch::require(int64_t count, bool allow_unused, comm::Group* group) const {
  std::vector<int64_t> seen = *touched_;
  seen.push_back(count);
  const at::Tensor by_all = at::tensor(seen, at::kLong);
  if (group != nullptr) group->all_reduce(by_all, comm::Op::kSum).wait();
  const int64_t* const all = by_all.data_ptr<int64_t>();
  const auto& entries = params_.entries();
  if (all[entries.size()] == 0) return false;
  if (std::all_of(all, all + entries.size(), [](int64_t touched) { return touched == 0; })) {
    throw ConfigError(
        "no parameter got a gradient in the first step; compute the loss with the session's own module");
  }
  for (size_t i = 0; i < entries.size() && !allow_unused; ++i) {
    if (all[i] > 0) continue;
    throw ConfigError(
        "the parameter {} got no gradient in the first step; take it out of the module, freeze it with "
        "set_requires_grad(false), or set allow_unused if later steps use it",
        entries[i].name);
  }
  return true;
}

}  // namespace syncopate
