#include "syncopate/spec/strategies.h"

#include <algorithm>
#include <cmath>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/spec/run_spec.h"

namespace syncopate::spec {
namespace {

template <typename Info>
std::vector<std::string> names_of(const std::vector<Info>& table) {
  std::vector<std::string> names;
  for (const Info& info : table) names.emplace_back(info.name);
  return names;
}

template <typename Info>
const Info& find(const std::vector<Info>& table, std::string_view name, const char* kind) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Info& info) { return info.name == name; });
  if (found != table.end()) return *found;
  throw ConfigError("unknown {} \"{}\"{}", kind, name, suggestion(name, names_of(table)));
}

}  // namespace

const std::vector<StrategyInfo>& strategies() {
  static const std::vector<std::string> buckets{"bucket_mib", "first_bucket_mib", "sparse_rows", "overlap",
                                                "share_update"};
  static const std::vector<StrategyInfo> kTable{
      {.name = "single", .pattern = Pattern::kNothing, .one_worker = true, .settings = {}},
      {.name = "gather-scatter", .pattern = Pattern::kGatherScatter, .settings = {"whole"}},
      {.name = "all-reduce", .takes_codec = true, .settings = {"whole", "share_update"}},
      {.name = "ddp", .takes_codec = true, .settings = buckets},
      {.name = "data-parallel",
       .in_one_process = true,
       .one_host = true,
       .takes_codec = true,
       .settings = buckets},
      {.name = "local-sgd",
       .rhythm = Rhythm::kLocal,
       .takes_codec = true,
       .sends_parameters = true,
       // The buckets are those of the synchronous steps before post_local_start.
       .settings = {"every", "overlap_average", "post_local_start", "moments", "delay", "bucket_mib",
                    "first_bucket_mib", "sparse_rows", "overlap"}},
      {.name = "diloco",
       .rhythm = Rhythm::kLocal,
       .takes_codec = true,
       .sends_parameters = true,
       .settings = {"every", "moments", "outer_lr", "outer_momentum", "outer_nesterov", "fragments", "delay",
                    "mixing"}},
      {.name = "hogwild",
       .rhythm = Rhythm::kFree,
       .pattern = Pattern::kNothing,
       .one_host = true,
       .settings = {"state"}},
      {.name = "parameter-server",
       .rhythm = Rhythm::kFree,
       .pattern = Pattern::kPushPull,
       .has_servers = true,
       .settings = {"sparse_rows", "staleness", "staleness_lr", "servers"}},
  };
  return kTable;
}

const std::vector<CodecInfo>& codecs() {
  static const std::vector<CodecInfo> kTable{
      {.name = "none", .packing = Packing::kNone, .feeds_back = false, .settings = {}},
      // Half precision loses too little to keep it.
      {.name = "fp16",
       .feeds_back = false,
       .holds_loss_scale = false,
       .bytes = 2,
       .settings = {"error_feedback"}},
      {.name = "bf16", .feeds_back = false, .bytes = 2, .settings = {"error_feedback"}},
      {.name = "int8", .bytes = 1 + 4.0 / 512, .settings = {"error_feedback"}},
      {.name = "int4", .bytes = 0.5 + 4.0 / 128, .settings = {"error_feedback"}},
      {.name = "top-k", .bytes = 6, .some_elements = true, .settings = {"ratio", "error_feedback"}},
      {.name = "random-k", .bytes = 4, .some_elements = true, .settings = {"ratio", "error_feedback"}},
      {.name = "power-sgd", .packing = Packing::kLowRank, .settings = {"rank", "warmup", "error_feedback"}},
      {.name = "one-bit",
       .packing = Packing::kSigns,
       .bytes = 0.125 + 4.0 / 512,
       .settings = {"warmup", "error_feedback"}},
  };
  return kTable;
}

const std::vector<ActivationCodecInfo>& activation_codecs() {
  static const std::vector<ActivationCodecInfo> kTable{
      {.name = "none", .settings = {}},
      {.name = "fp16", .settings = {"eval"}},
      {.name = "direct",
       .quantises = true,
       .settings = {"forward_bits", "backward_bits", "rounding", "eval"}},
      {.name = "ac-sgd",
       .quantises = true,
       .remembers = true,
       .settings = {"forward_bits", "backward_bits", "rounding", "eval", "first_visit", "buffer", "store",
                    "buffer_gib"}},
  };
  return kTable;
}

const std::vector<OptimizerInfo>& optimizers() {
  static const std::vector<OptimizerInfo> kTable{
      {.name = "adamw",
       .supports_one_bit = true,
       .one_bit_adam = true,
       .settings = {"beta1", "beta2", "eps"}},
      {.name = "sgd", .supports_one_bit = true, .nesterov = true, .settings = {"momentum", "nesterov"}},
      {.name = "lamb", .whole_tensors = true, .settings = {"beta1", "beta2", "eps"}},
      {.name = "lars", .whole_tensors = true, .settings = {"momentum", "eps", "trust"}},
  };
  return kTable;
}

const std::vector<RateInfo>& schedules() {
  static const std::vector<RateInfo> kTable{{.name = "linear"},
                                            {.name = "cosine"},
                                            {.name = "constant"},
                                            {.name = "step", .settings = {"milestones", "gamma"}},
                                            {.name = "cyclic", .settings = {"cycle", "cycle_ratio"}},
                                            {.name = "polynomial", .settings = {"power", "final_share"}}};
  return kTable;
}

const std::vector<RateInfo>& scalings() {
  static const std::vector<RateInfo> kTable{{.name = "none"},
                                            {.name = "linear", .settings = {"base_batch"}},
                                            {.name = "sqrt", .settings = {"base_batch"}}};
  return kTable;
}

const StrategyInfo& strategy_info(std::string_view name) { return find(strategies(), name, "strategy"); }
const CodecInfo& codec_info(std::string_view name) { return find(codecs(), name, "codec"); }
const ActivationCodecInfo& activation_codec_info(std::string_view name) {
  return find(activation_codecs(), name, "activation codec");
}
const OptimizerInfo& optimizer_info(std::string_view name) { return find(optimizers(), name, "optimizer"); }

std::vector<std::string> strategy_names() { return names_of(strategies()); }
std::vector<std::string> codec_names() { return names_of(codecs()); }
std::vector<std::string> activation_codec_names() { return names_of(activation_codecs()); }
std::vector<std::string> optimizer_names() { return names_of(optimizers()); }

std::vector<std::string> schedule_names() { return names_of(schedules()); }
std::vector<std::string> scaling_names() { return names_of(scalings()); }

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> kNames{"fp32", "bf16", "fp16"};
  return kNames;
}

Traffic traffic_of(const RunSpec& spec, int64_t parameters) {
  const StrategyInfo& strategy = strategy_info(spec.strategy.name);
  const CodecInfo& codec = codec_info(spec.codec.name);
  const auto workers = static_cast<double>(spec.replicas());
  const double array =
      codec.bytes * (codec.some_elements ? spec.codec.ratio : 1) * static_cast<double>(parameters);
  Traffic traffic{.pattern = strategy.pattern, .bytes = 0, .every = 1};
  if (strategy.rhythm == Rhythm::kLocal) traffic.every = spec.strategy.every;
  switch (strategy.pattern) {
    case Pattern::kNothing:
      break;
    case Pattern::kAllReduce:  // of a packed sum, too: parts to their owners, and their sums to all
    case Pattern::kGatherScatter:
      traffic.bytes = 2 * array * (workers - 1) / workers;
      break;
    case Pattern::kPushPull:
      traffic.bytes = array;
      break;
  }
  return traffic;
}

std::string missing_to_share_update(const RunSpec& spec) {
  if (spec.replicas() < 2) return "two or more workers that hold the same parameters";
  if (spec.compute.device != "cpu") return "--device cpu";
  if (codec_info(spec.codec.name).packing != Packing::kNone) return "gradients as they are (--codec none)";
  if (optimizer_info(spec.optim.name).whole_tensors) return "--optimizer adamw or sgd";
  const std::string& backend = spec.comm.backend;
  // Of replicas in stages those of one stage may sit on one host, whatever joins the hosts.
  const bool one_memory = backend == "auto" || backend == "shm" ||
                          (backend == "shm+gloo" && spec.pipeline.stages > 1) ||
                          strategy_info(spec.strategy.name).in_one_process;
  return one_memory ? "" : "workers that share memory (--backend auto or shm)";
}

bool shares_update(const RunSpec& spec) {
  const std::vector<std::string>& heeded = strategy_info(spec.strategy.name).settings;
  return spec.strategy.share_update &&
         std::find(heeded.begin(), heeded.end(), "share_update") != heeded.end() &&
         missing_to_share_update(spec).empty();
}

}  // namespace syncopate::spec
