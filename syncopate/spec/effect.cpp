#include "syncopate/spec/effect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "syncopate/base/error.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::spec {
namespace {

bool holds(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

struct Choice {
  std::string name;
  std::vector<std::string> settings;  ///< dotted
};

/// One of several things to choose, each with settings of its own.
struct Alternatives {
  std::string chosen;
  std::string chosen_in_words;  ///< where the name alone would not be understood
  const std::vector<Choice>& choices;
};

template <typename Info>
std::vector<Choice> choices_of(const std::vector<Info>& table, const std::string& prefix) {
  std::vector<Choice> choices;
  for (const Info& info : table) {
    choices.push_back({.name = std::string(info.name), .settings = {}});
    for (const std::string& setting : info.settings) choices.back().settings.push_back(prefix + setting);
  }
  return choices;
}

std::vector<Choice> choices_of_tasks() {
  std::vector<Choice> tasks;
  for (const std::string& task : task_names())
    tasks.push_back({.name = task, .settings = settings_of_task(task)});
  return tasks;
}

std::vector<Alternatives> alternatives(const RunSpec& spec) {
  // Made once: a sweep of thousands of runs asks about every setting of each.
  static const std::vector<Choice> by_strategy = choices_of(strategies(), "strategy."),
                                   by_codec = choices_of(codecs(), "codec."),
                                   by_activation = choices_of(activation_codecs(), "activation."),
                                   by_optimizer = choices_of(optimizers(), "optim."),
                                   by_schedule = choices_of(schedules(), "optim."),
                                   by_scaling = choices_of(scalings(), "optim."),
                                   by_task = choices_of_tasks();
  return {{spec.strategy.name, spec.strategy.name, by_strategy},
          {spec.codec.name, "--codec " + spec.codec.name, by_codec},
          {spec.activation.codec, "--activation-codec " + spec.activation.codec, by_activation},
          {spec.optim.name, spec.optim.name, by_optimizer},
          {spec.optim.schedule, "--schedule " + spec.optim.schedule, by_schedule},
          {spec.optim.scaling, "--lr-scaling " + spec.optim.scaling, by_scaling},
          {spec.task.name, "the task " + spec.task.name, by_task}};
}

/// Who heeds it where the choice made does not; empty: the choice does, or nobody of its kind. A choice that
/// is none is for validate() to refuse.
std::string others_that_heed(const Alternatives& kind, const std::string& setting) {
  std::vector<std::string> names;
  bool known = false;
  for (const Choice& choice : kind.choices) {
    known = known || choice.name == kind.chosen;
    if (!holds(choice.settings, setting)) continue;
    if (choice.name == kind.chosen) return "";
    names.push_back(choice.name);
  }
  if (!known) return "";
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What else must be so for a setting to count; empty: it does.
std::string unmet(const RunSpec& spec, const std::string& setting) {
  static const std::vector<std::string> buckets{"strategy.bucket_mib", "strategy.first_bucket_mib",
                                                "strategy.sparse_rows", "strategy.overlap"};
  const StrategyInfo& strategy = strategy_info(spec.strategy.name);
  if (strategy.rhythm == Rhythm::kLocal && holds(buckets, setting) && spec.strategy.post_local_start == 0)
    return "strategy.post_local_start above 0";
  if (setting == "strategy.staleness_lr" && spec.staleness_bound() == 0) return "a staleness above 0";
  // One bit an element is a codec like others, save for AdamW.
  if (setting == "codec.warmup" && codec_info(spec.codec.name).packing == Packing::kSigns &&
      !optimizer_info(spec.optim.name).one_bit_adam)
    return "--optimizer adamw with one-bit";
  if (setting == "optim.plateau_patience" && spec.optim.plateau_factor == 1)
    return "optim.plateau_factor below 1";
  if (setting == "train.balance_every" && !spec.train.balance) return "--balance";
  if (setting == "train.noise_scale") {
    if (strategy.rhythm != Rhythm::kTogether || strategy.has_servers || spec.replicas() < 2)
      return "two or more workers that average gradients in every step (ddp, all-reduce, gather-scatter)";
    if (codec_info(spec.codec.name).packing != Packing::kNone) return "gradients as they are (--codec none)";
  }
  if (setting == "strategy.share_update") return missing_to_share_update(spec);
  if (setting == "train.worker_evals" && (strategy.rhythm != Rhythm::kLocal || spec.replicas() < 2))
    return "two or more workers whose models differ (local-sgd, diloco)";
  if ((setting == "network.hosts" || setting == "network.scale") && spec.network.name.empty())
    return "--network";
  const bool of_stages = (setting.starts_with("pipeline.") && setting != "pipeline.stages") ||
                         setting.starts_with("activation.");
  if (of_stages && spec.pipeline.stages < 2) return "--stages 2 or more";
  const bool of_gpus =
      setting == "compute.graphs" || setting == "compute.mps" || setting == "compute.autotune";
  if (of_gpus && spec.compute.device == "cpu") return "--device cuda";
  if (setting == "compute.autotune" && spec.compute.precision == "fp32") return "--precision bf16";
  if (setting == "compute.mps" && spec.comm.workers < 2) return "--workers 2 or more";
  static const std::vector<std::string> of_files{"task.text", "task.encoding", "task.separator",
                                                 "task.cache"};
  if (holds(of_files, setting) && spec.task.data.empty() && spec.validation().path.empty()) return "--data";
  if (setting == "model.vocab_size") {
    if (!spec.model.vocab.empty()) return "a vocabulary that is built, not read from --vocab";
    const auto& presets = task_family(spec.task.name).models;
    const bool preset = spec.model.name.empty() || holds(presets, spec.model.name);
    if (!spec.model.init_from.empty() || !preset) return "a vocabulary that is built, not a model folder's";
  }
  return "";
}

}  // namespace

std::optional<std::string> no_effect(const RunSpec& spec, const std::string& setting) {
  static RunSpec names;
  static const Fields fields = names.fields();
  const std::string label = fields.find(setting).label();
  for (const Alternatives& kind : alternatives(spec)) {
    const std::string others = others_that_heed(kind, setting);
    if (others.empty()) continue;
    return fmt::format("{} has no effect with {}: it is a setting of {}", label, kind.chosen_in_words,
                       others);
  }
  const std::string needed = unmet(spec, setting);
  if (needed.empty()) return std::nullopt;
  return fmt::format("{} has no effect here: it needs {}", label, needed);
}

void require_effect(const RunSpec& spec, const std::vector<std::string>& given) {
  for (const std::string& setting : given) {
    if (const auto why = no_effect(spec, setting)) throw ConfigError("{}; leave it out", *why);
  }
}

void set_to_defaults(RunSpec& spec, const std::vector<std::string>& names) {
  RunSpec defaults;
  const Fields fields = spec.fields(), usual = defaults.fields();
  for (const std::string& name : names) fields.set(name, Fields::text_of(usual.find(name)));
}

void drop_unheeded(RunSpec& spec, const std::vector<std::string>& given) {
  std::vector<std::string> unheeded;
  const Fields fields = spec.fields();
  for (const Fields::Field& field : fields.all()) {
    if (!holds(given, field.name) && no_effect(spec, field.name)) unheeded.push_back(field.name);
  }
  set_to_defaults(spec, unheeded);
}

void require_effect_on_task(const std::string& task, const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) {
    std::string setting = "task." + flag;
    std::replace(setting.begin(), setting.end(), '-', '_');
    std::vector<std::string> owners;
    for (const std::string& each : task_names()) {
      if (holds(settings_of_task(each), setting) || holds(task_family(each).answers, flag))
        owners.push_back(each);
    }
    if (owners.empty() || holds(owners, task)) continue;
    throw ConfigError("--{} has no effect with the task {}: it is for {}; leave it out", flag, task,
                      fmt::join(owners, ", "));
  }
}

std::string rare_averages(const RunSpec& spec, int64_t steps) {
  const RunSpec::Strategy& strategy = spec.strategy;
  if (strategy_info(strategy.name).rhythm != Rhythm::kLocal || spec.replicas() < 2) return "";
  const int64_t local = steps - strategy.post_local_start;
  if (local <= 0) {
    return fmt::format(
        "all {} steps come before strategy.post_local_start={}: workers make every step together", steps,
        strategy.post_local_start);
  }
  if (local >= strategy.every) return "";
  return fmt::format(
      "strategy.every={} is more than the {}{} steps of this run: workers never average while they train, "
      "only the model that is evaluated and saved is their average",
      strategy.every, local, strategy.post_local_start > 0 ? " local" : "");
}

}  // namespace syncopate::spec
