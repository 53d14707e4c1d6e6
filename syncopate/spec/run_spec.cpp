#include "syncopate/spec/run_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "syncopate/base/error.h"
#include "syncopate/base/text.h"
#include "syncopate/spec/strategies.h"
#include "syncopate/spec/tasks.h"

namespace syncopate::spec {

void RunSpec::complete() {
  if (model.name.empty() && model.init_from.empty()) model.name = task_family(task.name).models.front();
}

std::string RunSpec::label() const {
  std::string text = strategy.name;
  if (codec_info(codec.name).packing != Packing::kNone) text += ", " + codec.name;
  if (pipeline.stages > 1) text += fmt::format(", {} stages", pipeline.stages);
  if (pipeline.stages > 1 && activation.codec != "none") text += ", " + activation.codec;
  return text;
}

std::string RunSpec::name() {
  const std::filesystem::path folder(model.init_from.empty() ? model.name : model.init_from);
  std::string short_model =
      folder.filename().empty() ? folder.parent_path().filename().string() : folder.filename().string();
  return fmt::format("{}-{}-{}-{}w-{}", task.name, short_model, strategy.name, comm.workers,
                     fields().hash().substr(0, 8));
}

bool RunSpec::chooses() const { return train.patience > 0 || optim.plateau_factor < 1 || keeps_best(); }

bool RunSpec::keeps_best() const {
  return train.keep == "best" || (train.keep == "auto" && train.patience > 0);
}

RunSpec::Validation RunSpec::validation() const {
  constexpr double kUsualShare = 0.05;
  if (task.validation == "auto") return {.share = chooses() ? kUsualShare : 0, .path = {}};
  if (task.validation == "off") return {};
  const auto share = parse_number(task.validation);
  if (!share) return {.share = 0, .path = task.validation};
  if (!(*share > 0 && *share < 1)) {
    throw ConfigError(
        "--validation must be auto, off, a share of the training data above 0 and below 1, or a file; got {}",
        task.validation);
  }
  return {.share = *share, .path = {}};
}

bool RunSpec::runs_free() const {
  // A parameter server that waits for every worker in every step is an all-reduce by other means.
  const StrategyInfo& info = strategy_info(strategy.name);
  return info.rhythm == Rhythm::kFree && !(info.has_servers && staleness_bound() == 0);
}

int64_t RunSpec::servers() const { return strategy_info(strategy.name).has_servers ? strategy.servers : 0; }

int64_t RunSpec::staleness_bound() const {
  if (strategy.staleness == "inf") return -1;
  const auto bound = parse_integer(strategy.staleness);
  if (!bound || *bound < 0) {
    throw ConfigError("strategy.staleness must be 0 or more, or inf, got \"{}\"", strategy.staleness);
  }
  return *bound;
}

double RunSpec::slowness_of(int rank) const {
  if (comm.slow.empty()) return 1;
  const auto parts = split(comm.slow, ':');
  const auto who = parts.size() == 2 ? parse_integer(parts[0]) : std::nullopt;
  const auto factor = parts.size() == 2 ? parse_number(parts[1]) : std::nullopt;
  if (!who || *who < 0 || !factor || !(*factor >= 1 && *factor <= 1000)) {
    throw ConfigError("comm.slow must be RANK:FACTOR with a factor from 1 to 1000, got \"{}\"", comm.slow);
  }
  if (*who >= comm.workers) {
    throw ConfigError("comm.slow={} names a worker that does not exist; there are {}", comm.slow,
                      comm.workers);
  }
  return *who == rank ? *factor : 1;
}

RunSpec::Saving RunSpec::saving() const {
  constexpr double kAtLeast = 600;  // so that a kill never costs more than ten minutes
  if (train.save_every == "auto") return {.epochs = true, .seconds = kAtLeast};
  if (train.save_every == "epoch") return {.epochs = true};
  if (const auto seconds = parse_duration(train.save_every)) return {.seconds = *seconds};
  if (const auto steps = parse_integer(train.save_every); steps && *steps > 0) return {.steps = *steps};
  throw ConfigError(
      "--save-every must be a number of steps (500), a time (90s, 10m, 2h), epoch, or auto (every epoch and "
      "every "
      "10 minutes), got \"{}\"",
      train.save_every);
}

int64_t RunSpec::examples_per_step() const {
  if (train.accumulate < 1) throw ConfigError("--accumulate must be 1 or more, got {}", train.accumulate);
  if (train.batch_size < 0) throw ConfigError("--batch-size must be 1 or more, got {}", train.batch_size);
  if (train.global_batch < 0)
    throw ConfigError("--global-batch must be 1 or more, got {}", train.global_batch);
  if (train.batch_size > 0 && train.global_batch > 0) {
    throw ConfigError("--batch-size (per worker) and --global-batch exclude each other; give one of them");
  }
  constexpr int64_t kDefaultBatch = 16;
  constexpr double kMost = 1e9;
  const int64_t batch = train.batch_size > 0 ? train.batch_size : kDefaultBatch;
  const auto together = [](auto... factors) { return (static_cast<double>(factors) * ...); };
  if (together(train.global_batch > 0 ? 1 : batch, replicas(), train.accumulate) > kMost ||
      train.global_batch > kMost) {
    throw ConfigError(
        "a step of more than {:.0f} examples is too large; make --accumulate or the batch smaller", kMost);
  }
  if (train.global_batch > 0) {
    if (train.global_batch < replicas() * train.accumulate) {
      throw ConfigError(
          "--global-batch {} is less than one example per {} and micro-batch ({} x {}); make it larger",
          train.global_batch, pipeline.stages > 1 ? "replica" : "worker", replicas(), train.accumulate);
    }
    return train.global_batch;
  }
  return batch * replicas() * train.accumulate;
}

int64_t RunSpec::micro_batches() const {
  if (pipeline.stages == 1) return 1;
  const int64_t examples = examples_per_step() / (replicas() * train.accumulate);
  if (pipeline.micro_batches == 0) return std::min(2 * pipeline.stages, examples);
  if (pipeline.micro_batches > examples) {
    throw ConfigError(
        "pipeline.micro_batches={} are more than the {} example{} that a replica has in a batch; make the "
        "batch "
        "larger",
        pipeline.micro_batches, examples, examples == 1 ? "" : "s");
  }
  return pipeline.micro_batches;
}

std::vector<std::vector<int>> RunSpec::layout() const {
  std::vector<std::vector<int>> ranks(static_cast<size_t>(pipeline.stages));
  if (pipeline.layout.empty()) {
    for (int rank = 0; rank < comm.workers; ++rank)
      ranks[static_cast<size_t>(rank % pipeline.stages)].push_back(rank);
    return ranks;
  }
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(
        "pipeline.layout={} is no layout of {} workers in {} stages: {}; give the ranks of each stage, such "
        "as "
        "0,2/1,3",
        pipeline.layout, comm.workers, pipeline.stages, why);
  };
  std::set<int64_t> seen;
  const std::vector<std::string_view> stages = split(pipeline.layout, '/');
  if (static_cast<int64_t>(stages.size()) != pipeline.stages)
    refuse(fmt::format("it has {} stage{}", stages.size(), stages.size() == 1 ? "" : "s"));
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const std::string_view word : split(stages[stage], ',')) {
      const auto rank = parse_integer(word);
      if (!rank || *rank < 0 || *rank >= comm.workers)
        refuse(fmt::format("\"{}\" is none of the ranks", word));
      if (!seen.insert(*rank).second) refuse(fmt::format("rank {} stands in it twice", *rank));
      ranks[stage].push_back(static_cast<int>(*rank));
    }
    if (static_cast<int64_t>(ranks[stage].size()) != replicas())
      refuse(fmt::format("stage {} has {} ranks, not {}", stage, ranks[stage].size(), replicas()));
  }
  return ranks;
}

int64_t RunSpec::max_length() const {
  return task.max_length > 0 ? task.max_length : task_family(task.name).max_length;
}

int64_t RunSpec::eval_batch() const {
  return train.eval_batch > 0 ? train.eval_batch : task_family(task.name).eval_batch;
}

bool may_differ_between_ranks(const std::string& field) {
  static const std::set<std::string> free{
      "task.data",  "task.cache",      "model.init_from",        "model.vocab",   "comm.timeout",
      "comm.fault", "compute.threads", "compute.loader_threads", "compute.device"};
  return free.contains(field);
}

Change change_on_resume(const std::string& field) {
  static const std::set<std::string> nothing{
      "comm.timeout",           "comm.fault",         "comm.slow",
      "comm.backend",           "strategy.servers",   "compute.threads",
      "compute.loader_threads", "train.save_every",   "train.eval_batch",
      "train.eval_every",       "task.data",          "model.vocab",
      "comm.workers",           "task.validation",    "train.tensorboard",
      "train.noise_scale",      "train.worker_evals", "network.name",
      "network.hosts",          "network.scale",      "pipeline.schedule",
      "activation.buffer",      "activation.eval",    "strategy.share_update",
      "compute.recompute",      "compute.graphs",     "compute.mps",
      "compute.autotune",       "task.cache"};
  static const std::set<std::string> extends{"train.steps",      "train.epochs",  "train.patience",
                                             "train.time_limit", "model.dropout", "model.inner_dropout",
                                             "train.keep"};
  if (nothing.contains(field)) return Change::kNothing;
  const bool rate = field.starts_with("optim.") && field != "optim.name";
  return rate || extends.contains(field) ? Change::kExtends : Change::kRefused;
}

}  // namespace syncopate::spec
