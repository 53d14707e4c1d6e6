#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The paper half of what has a name in a run: what a strategy, codec or optimizer is called, what is constant
// about it, which settings it heeds and what it puts on the wire. How each is made stands beside the classes
// (parallel/make.h, optim/optimizer.h); a test holds the halves equal.
namespace syncopate::spec {

struct RunSpec;

/// How the workers of a strategy keep together.
enum class Rhythm {
  kTogether,  ///< every step is one update that all workers make
  kLocal,     ///< workers update by themselves and average now and then
  kFree,      ///< workers update one model, each when it is ready
};

/// What travels between workers in an exchange.
enum class Pattern {
  kNothing,        ///< one worker, or one memory
  kAllReduce,      ///< 2 (n - 1) / n of the array per worker
  kGatherScatter,  ///< all to rank 0 and back
  kPushPull,       ///< gradients to a server, parameters back
};

struct StrategyInfo {
  std::string_view name;
  Rhythm rhythm = Rhythm::kTogether;
  Pattern pattern = Pattern::kAllReduce;
  bool one_worker = false;            ///< has no others; of a model in stages: no other replicas
  bool in_one_process = false;        ///< runs its workers as threads
  bool one_host = false;              ///< its workers share memory
  bool has_servers = false;           ///< processes beside the workers hold the model
  bool takes_codec = false;           ///< what it exchanges may be compressed
  bool sends_parameters = false;      ///< an exchange carries parameters, or their differences, not gradients
  std::vector<std::string> settings;  ///< names below `strategy.` that it heeds, `name` apart
};

/// How a codec packs a sum over ranks.
enum class Packing {
  kNone,      ///< fp32, by the backend's own all-reduce
  kElements,  ///< every element, or some of them, in fewer bits
  kLowRank,   ///< a matrix as two thin ones
  kSigns,     ///< one bit an element; with AdamW a strategy of its own
};

struct CodecInfo {
  std::string_view name;
  Packing packing = Packing::kElements;
  bool feeds_back = true;             ///< unless told otherwise: adds what it lost to the next gradient
  bool holds_loss_scale = true;       ///< its range holds gradients in an fp16 loss scale
  double bytes = 4;                   ///< on the wire per element, a bucket's scale included
  bool some_elements = false;         ///< `bytes` counts for the fraction `codec.ratio` of them
  std::vector<std::string> settings;  ///< names below `codec.` that it heeds, `name` apart
};

/// How what travels between pipeline stages is packed.
struct ActivationCodecInfo {
  std::string_view name;
  bool quantises = false;             ///< into activation.forward_bits and activation.backward_bits
  bool remembers = false;             ///< sends changes against what both sides remember of an example
  std::vector<std::string> settings;  ///< names below `activation.` that it heeds, `codec` apart
};

struct OptimizerInfo {
  std::string_view name;
  bool whole_tensors = false;         ///< looks at a tensor's norm, so that no tensor may be cut
  bool supports_one_bit = false;      ///< works with the codec one-bit
  bool one_bit_adam = false;          ///< which is 1-bit Adam then
  bool nesterov = false;              ///< can take Nesterov momentum
  std::vector<std::string> settings;  ///< names below `optim.` that decide its update, beside the common ones
};

/// A schedule, or a scaling, of the learning rate.
struct RateInfo {
  std::string_view name;
  std::vector<std::string> settings{};  ///< names below `optim.` that it heeds, beside the common ones
};

const std::vector<StrategyInfo>& strategies();
const std::vector<CodecInfo>& codecs();
const std::vector<ActivationCodecInfo>& activation_codecs();
const std::vector<OptimizerInfo>& optimizers();
const std::vector<RateInfo>& schedules();
const std::vector<RateInfo>& scalings();

// By name; throw ConfigError with a suggestion.
const StrategyInfo& strategy_info(std::string_view name);
const CodecInfo& codec_info(std::string_view name);
const ActivationCodecInfo& activation_codec_info(std::string_view name);
const OptimizerInfo& optimizer_info(std::string_view name);

std::vector<std::string> strategy_names();
std::vector<std::string> codec_names();
std::vector<std::string> activation_codec_names();
std::vector<std::string> optimizer_names();
std::vector<std::string> schedule_names();
std::vector<std::string> scaling_names();
const std::vector<std::string>& precision_names();

/// What one worker sends in an exchange.
struct Traffic {
  Pattern pattern = Pattern::kNothing;
  double bytes = 0;   ///< by a worker, on average over workers; without what is exchanged by rows
  int64_t every = 1;  ///< steps between exchanges of the same element
};

/// For planning: of a model with so many parameters in dense arrays, after any warm-up. PowerSGD depends on
/// the shapes of the matrices: for it, and for a push of rows, this is the size of the whole array.
Traffic traffic_of(const RunSpec& spec, int64_t parameters);

/// What replicas in one memory lack to share the update out, where the strategy heeds share_update; empty:
/// nothing.
std::string missing_to_share_update(const RunSpec& spec);
/// Whether they do.
bool shares_update(const RunSpec& spec);

}  // namespace syncopate::spec
