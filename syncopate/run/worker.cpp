#include "syncopate/run/worker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/broadcast_text.h"
#include "syncopate/comm/metered.h"
#include "syncopate/data/loader.h"
#include "syncopate/parallel/engines/local_engine.h"
#include "syncopate/parallel/engines/slow_engine.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/run/build.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/run/folder.h"
#include "syncopate/run/recorder.h"
#include "syncopate/tasks/setup.h"
#include "syncopate/train/trainer.h"

namespace syncopate::run {
namespace {

class Worker {
 public:
  Worker(RunSpec spec, const World& world, const WorkerOptions& options)
      : spec_(std::move(spec)), world_(world), options_(options) {}

  WorkerResult run(std::unique_ptr<comm::Group> group) {
    if (group) {
      membership_.group = std::move(group);
    } else {
      membership_ = join(world_, std::chrono::milliseconds(std::llround(1e3 * spec_.comm.timeout)));
    }
    if (membership_.lifeline && options_.give_up) {
      membership_.lifeline->watch(
          [this](const lifeline::Failure& failure) { options_.give_up(failure.for_others()); });
    }
    try {
      const int neighbours = comm::ranks_on_this_machine(*membership_.group);
      compute_ = set_up_compute(spec_.compute.threads > 0 ? static_cast<int>(spec_.compute.threads)
                                                          : default_threads(neighbours));
      const WorkerResult result = serves() ? serve() : work();
      membership_.status(-1, "leaving");
      membership_.leave();
      return result;
    } catch (const CommError& error) {
      // Whoever noticed first may be a victim: the lifeline knows the cause.
      if (membership_.lifeline) {
        if (const auto failure = membership_.lifeline->await_failure(std::chrono::milliseconds(500))) {
          throw ReportedError(ExitCode::kComm, failure->for_others());
        }
      }
      report(error.what(), error.code());
    } catch (const Error& error) {
      report(error.what(), error.code());
    } catch (const std::filesystem::filesystem_error& error) {
      report(error.what(), ExitCode::kData);
    } catch (const std::exception& error) {
      report(fmt::format("unexpected failure: {}; please report it", error.what()), ExitCode::kInternal);
    }
  }

 private:
  int workers() const { return world_.size - static_cast<int>(spec_.servers()); }
  bool serves() const { return world_.rank >= workers(); }

  /// Holds a part of the model for the workers, until they have left.
  WorkerResult serve() {
    membership_.status(-1, "serving");
    parallel::ShardServerOptions options = server_options(spec_);
    options.workers = workers();
    const auto fault = parse_fault(spec_.comm.fault);
    options.before_update = [&](int64_t number) {
      if (fault && fault->rank == world_.rank) fault->fail_if_due(number, "update");
    };
    parallel::serve(*membership_.group, options, [this](const Error& error) {
      if (error.code() != ExitCode::kComm ||
          !membership_.lifeline->await_failure(std::chrono::milliseconds(500))) {
        membership_.fail(error.what(), static_cast<int>(error.code()));
      }
    });
    return {};
  }

  WorkerResult work() {
    comm::Metered world(std::move(membership_.group));
    const auto part = spec_.servers() > 0 ? world.part(0, world_.rank) : nullptr;
    comm::Metered& group = part ? *part : world;
    choose_folder_together(group);
    membership_.status(-1, "loading");
    tasks::TaskSetup setup = tasks::family_of(spec_.task.name).make(spec_, group);
    if (options_.share_data) options_.share_data(group, setup.train, setup.test);
    const at::Device device = parse_device(spec_.compute.device);
    const PrecisionChoice precision = agree_on_precision(device, group);
    if (!precision.note.empty()) setup.notes.push_back(precision.note);
    compute_.device = describe(device);
    compute_.precision = tensor::name_of(precision.used);
    tensor::FlatParams params(setup.model->parameters(), device);
    move_buffers(*setup.model, device);
    const auto optimizer = make_worker_optimizer(spec_, params);
    optim::LossScale loss_scale;
    parallel::Replica replica{
        .model = *setup.model,
        .params = params,
        .optimizer = *optimizer,
        .clip = spec_.optim.clip,
        .precision = precision.used,
        .loss_scale = precision.used == tensor::Precision::kFp16 ? &loss_scale : nullptr};
    if (setup.connect) setup.connect(group);
    const auto engine = make_engine();
    // Workers that run free make an update each where those in step make one together.
    const bool free = spec_.runs_free();
    const int64_t updates_per_step = free ? workers() : 1;
    const int64_t examples = spec_.examples_per_step() / updates_per_step;
    data::Loader loader(setup.train, {.global_batch = examples,
                                      .workers = free ? 1 : workers(),
                                      .rank = free ? 0 : world_.rank,
                                      .accumulate = static_cast<int>(spec_.train.accumulate),
                                      .seed = static_cast<uint64_t>(spec_.train.seed),
                                      .shuffle = spec_.task.shuffle,
                                      .threads = static_cast<int>(spec_.compute.loader_threads),
                                      .on_demand = free,
                                      .keep_empty = setup.model->every_rank_computes()});
    const int64_t epochs = std::max<int64_t>(1, spec_.train.epochs);
    const int64_t steps =
        spec_.train.steps > 0 ? spec_.train.steps * updates_per_step : epochs * loader.steps_per_epoch();
    const optim::Schedule schedule =
        make_schedule(spec_.optim, (steps + updates_per_step - 1) / updates_per_step, examples);
    const auto strategy = make_strategy(spec_, group, steps, &world);

    Recorder recorder(folder_, membership_, world_.rank, steps, options_.progress, options_.stop_requested,
                      parse_fault(spec_.comm.fault));
    open_folder(group);
    announce(recorder, setup, params, steps);
    if (!options_.resume) recorder.begin();
    train::Trainer trainer(
        {.replica = replica,
         .engine = *engine,
         .strategy = *strategy,
         .group = group,
         .loader = loader,
         .test = setup.test.get(),
         .metric = setup.metric,
         .schedule = schedule,
         .listener = recorder},
        {.steps = steps,
         .updates_per_step = updates_per_step,
         .eval_every = parse_integer(spec_.train.eval_every).value_or(0) * updates_per_step,
         .save_every = spec_.train.save_every * updates_per_step,
         .eval_batch = spec_.eval_batch(),
         .broadcast_buffers = spec_.model.batch_norm == "broadcast",
         .seed = static_cast<uint64_t>(spec_.train.seed),
         .control = {.patience = spec_.train.patience,
                     .plateau_factor = spec_.optim.plateau_factor,
                     .plateau_patience = spec_.optim.plateau_patience,
                     .time_limit = spec_.train.time_limit},
         .balance = balance(),
         .checkpoint = folder_.checkpoint(),
         .inputs = inputs_of(setup),
         .environment = environment(steps)});
    const train::TrainResult trained = trainer.run(options_.resume);
    WorkerResult result;
    result.interrupted = trained.interrupted;
    if (trained.interrupted) {
      recorder.say(fmt::format("stopped after step {}; continue with --resume --out {}", trained.steps,
                               folder_.path.string()));
    } else if (world_.rank == 0) {
      if (trained.ended != "steps") {
        recorder.say(fmt::format("ended after step {} of {}: {}", trained.steps, steps, trained.ended));
      }
      membership_.status(trained.steps, "saving the model");
      result.record = conclude(setup, recorder, trained);
    }
    return result;
  }

  std::unique_ptr<parallel::Engine> make_engine() const {
    std::unique_ptr<parallel::Engine> engine = std::make_unique<parallel::LocalEngine>();
    const double slowness = spec_.slowness_of(world_.rank);
    if (slowness > 1) engine = std::make_unique<parallel::SlowEngine>(std::move(engine), slowness);
    return engine;
  }

  [[noreturn]] void report(const std::string& sentence, ExitCode code) {
    membership_.fail(sentence, static_cast<int>(code));
    throw ReportedError(code, sentence);
  }

  /// The trial of half precision may come out otherwise on another rank: all use it, or none.
  PrecisionChoice agree_on_precision(at::Device device, comm::Group& group) const {
    const tensor::Precision asked = tensor::parse_precision(spec_.compute.precision);
    PrecisionChoice choice = choose_precision(asked, device);
    at::Tensor refused = at::full({1}, choice.used == asked ? 0.0 : 1.0, at::kDouble);
    group.all_reduce(refused, comm::Op::kMax).wait();
    if (refused.item<double>() == 0) return choice;
    if (choice.used == asked)
      choice.note = "another worker's CPU is slower in half precision: computing in fp32";
    choice.used = tensor::Precision::kFp32;
    return choice;
  }

  void choose_folder_together(comm::Group& group) {
    std::string path = options_.out;
    if (group.rank() == 0 && !options_.folder_is_ready) {
      path = choose_folder(spec_, options_.out, options_.resume).path.string();
    }
    folder_.path = comm::broadcast_text(group, path, 0);
  }

  std::optional<train::BalanceOptions> balance() const {
    if (!spec_.train.balance) return std::nullopt;
    return train::BalanceOptions{.every = spec_.train.balance_every};
  }

  static nlohmann::ordered_json inputs_of(const tasks::TaskSetup& setup) {
    return {{"training examples", setup.train->size()},
            {"test examples", setup.test->size()},
            {"vocabulary", setup.fingerprint}};
  }

  nlohmann::ordered_json environment(int64_t steps) const {
    nlohmann::ordered_json all = compute_.to_json();
    all["steps"] = steps;  // the schedule depends on it
    return all;
  }

  /// Only now that everything is loaded: a run that cannot begin leaves nothing behind.
  void open_folder(comm::Group& group) {
    if (world_.rank == 0) {
      if (!options_.folder_is_ready) start_folder(folder_, spec_);
      std::filesystem::remove(folder_.done());
    }
    group.barrier();  // rank 0 sweeps out what an earlier run left: nobody writes before that
    make_folder(folder_.path);
  }

  void announce(Recorder& recorder, const tasks::TaskSetup& setup, const tensor::FlatParams& params,
                int64_t steps) {
    if (world_.rank != 0) return;
    int64_t parameters = 0;
    for (const auto& entry : params.entries()) parameters += entry.size;
    recorder.say(compute_.sentence());
    recorder.say(
        fmt::format("{} · {} ({:.1f} million parameters, {}) · {} · {} worker{}{}", spec_.task.name,
                    spec_.model.init_from.empty() ? spec_.model.name : "from " + spec_.model.init_from,
                    static_cast<double>(parameters) / 1e6, setup.input, spec_.strategy.name, workers(),
                    workers() == 1 ? "" : "s",
                    world_.launcher == "none" || world_.launcher == "syncopate"
                        ? ""
                        : fmt::format(" by {}", world_.launcher)));
    const bool free = spec_.runs_free();
    recorder.say(fmt::format("{} training and {} test examples · {} per {} · {} {}s · into {}",
                             setup.train->size(), setup.test->size(),
                             spec_.examples_per_step() / (free ? workers() : 1), free ? "update" : "step",
                             steps, free ? "update" : "step", folder_.path.string()));
    for (const std::string& note : setup.notes) recorder.say("note: " + note);
    nlohmann::ordered_json environment = compute_.to_json();
    environment["launcher"] = world_.launcher;
    environment["workers"] = workers();
    if (spec_.servers() > 0) environment["servers"] = spec_.servers();
    write_file_atomically(folder_.environment(), environment.dump(2) + "\n");
  }

  record::RunRecord conclude(const tasks::TaskSetup& setup, const Recorder& recorder,
                             const train::TrainResult& trained) {
    record::RunRecord record;
    record.task = spec_.task.name;
    record.model = spec_.model.init_from.empty() ? spec_.model.name : spec_.model.init_from;
    record.strategy = spec_.strategy.name;
    record.codec = spec_.codec.name;
    record.workers = workers();
    summarise(recorder.steps(), record);
    record.bytes_sent_per_step =
        trained.bytes_sent / static_cast<double>(std::max<int64_t>(1, trained.steps));
    if (spec_.runs_free()) {  // steps of different workers pass at the same time
      record.train_seconds = trained.seconds;
      record.examples_per_s = static_cast<double>(record.examples) / trained.seconds;
      record.updates = trained.updates;
      record.staleness = trained.staleness;
    } else {
      record.bytes_sent_per_step /= workers();
    }
    record.epochs = trained.epochs;
    record.eval = trained.eval;
    record.run_dir = folder_.path.string();
    record.init_from = spec_.model.init_from;
    record.device = compute_.device;
    record.precision = compute_.precision;
    record.skipped_steps = trained.skipped;
    record.shares = trained.shares;
    record.ended = trained.ended;
    save_model(folder_.model(), setup.save);
    write_file_atomically(folder_.result(), record::to_json(record).dump(2) + "\n");
    write_file_atomically(folder_.done(), "");
    return record;
  }

  RunSpec spec_;
  World world_;
  WorkerOptions options_;
  ComputeSetup compute_;
  comm::Membership membership_;
  RunFolder folder_;
};

}  // namespace

WorkerResult run_worker(RunSpec spec, const World& world, const WorkerOptions& options,
                        std::unique_ptr<comm::Group> group) {
  return Worker(std::move(spec), world, options).run(std::move(group));
}

}  // namespace syncopate::run
