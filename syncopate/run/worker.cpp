#include "syncopate/run/worker.h"

#include <ATen/ATen.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/hash.h"
#include "syncopate/base/notes.h"
#include "syncopate/base/process.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/base/version.h"
#include "syncopate/comm/gpus.h"
#include "syncopate/comm/metering/metered.h"
#include "syncopate/comm/together/agree.h"
#include "syncopate/comm/together/broadcast_text.h"
#include "syncopate/comm/together/machine.h"
#include "syncopate/parallel/server/shard_server.h"
#include "syncopate/record/read_run.h"
#include "syncopate/run/assemble.h"
#include "syncopate/run/claims.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/device.h"
#include "syncopate/run/fault_injection.h"
#include "syncopate/run/last_words.h"
#include "syncopate/run/loaded.h"
#include "syncopate/run/options.h"
#include "syncopate/run/placement.h"
#include "syncopate/run/prediction.h"
#include "syncopate/run/records/opening.h"
#include "syncopate/run/records/outcome.h"
#include "syncopate/run/records/recorder.h"
#include "syncopate/run/records/run_trace.h"
#include "syncopate/run/records/stage_records.h"
#include "syncopate/run/records/summary.h"
#include "syncopate/run/records/usage.h"
#include "syncopate/run/stages.h"
#include "syncopate/spec/effect.h"
#include "syncopate/spec/folder.h"
#include "syncopate/tasks/setup.h"

namespace syncopate::run {
namespace {

class Worker {
 public:
  Worker(spec::RunSpec spec, const World& world, const WorkerOptions& options)
      : spec_(std::move(spec)), world_(world), options_(options) {
    provenance_ = {.version = program_version(),
                   .commit = program_commit(),
                   .date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
                   .host = host_name(),
                   .command = options_.command,
                   .seed = spec_.train.seed,
                   .lr = spec_.optim.lr};
    if (!spec_.network.name.empty()) placement_ = place(spec_, world_.size);
  }

  WorkerResult run(std::unique_ptr<comm::Group> group) {
    if (group) {
      membership_.group = std::move(group);
    } else {
      try {
        membership_ = join(world_, spec_.comm.backend, timeout(),
                           claims_of(spec_, world_, options_.out, options_.resume), options_.note);
      } catch (const ConfigError& error) {
        if (world_.launcher != "syncopate") throw;
        throw ReportedError(error.code(), error.what());  // the launcher was told
      }
    }
    std::optional<LastWords> last_words;
    if (membership_.lifeline) {
      last_words.emplace([this](const LastWord& word) {
        log_whole(word.whole);
        membership_.fail(word.sentence, word.exit_code);
        return world_.launcher == "syncopate";  // which reports it once
      });
    }
    if (membership_.lifeline && options_.give_up) {
      membership_.lifeline->watch(
          [this](const lifeline::Failure& failure) { options_.give_up(failure.for_others()); });
    }
    try {
      neighbours_ = comm::neighbours(*membership_.group);
      if (spec_.servers() == 0) {  // which have no part of a GPU
        comm::use_gpus(membership_, device(), spec_.comm.backend, timeout());
      }
      compute_ = set_up_compute(spec_.compute.threads > 0 ? static_cast<int>(spec_.compute.threads)
                                                          : default_threads(neighbours_.ranks));
      const WorkerResult result = serves() ? serve() : work();
      leave();
      return result;
    } catch (const LeavesOnPurpose&) {
      tell("rank {} leaves, as comm.fault says", world_.rank);
      leave();
      return {};
    } catch (const CommError& error) {
      // Whoever noticed first may be a victim: the lifeline knows the cause.
      if (membership_.lifeline) {
        if (const auto failure = membership_.lifeline->await_failure(std::chrono::milliseconds(500))) {
          const bool config = failure->exit_code == static_cast<int>(ExitCode::kConfig);
          throw ReportedError(config ? ExitCode::kConfig : ExitCode::kComm, failure->for_others());
        }
      }
      report(error.what(), error.code());
    } catch (const DivergedError& error) {
      report(fmt::format("{} (--lr, --warmup, --clip)", error.what()), error.code());
    } catch (const Error& error) {
      report(error.what(), error.code());
    } catch (const std::filesystem::filesystem_error& error) {
      report(error.what(), ExitCode::kData);
    } catch (const std::exception& error) {
      const std::string log = log_whole(error.what());
      report(fmt::format("unexpected failure: {}; please report it{}", first_line(error.what()),
                         log.empty() ? "" : fmt::format(", {} says more", log)),
             ExitCode::kInternal);
    }
  }

 private:
  void leave() {
    membership_.status(-1, "leaving");
    membership_.leave();
  }

  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(std::llround(1e3 * spec_.comm.timeout));
  }
  /// Where this rank computes: of several GPUs its own, whether or not a launcher said who else is here.
  c10::Device device() const { return parse_device(spec_.compute.device, neighbours_.before); }
  int workers() const { return world_.size - static_cast<int>(spec_.servers()); }
  bool serves() const { return world_.rank >= workers(); }

  /// Holds a part of the model for the workers, until they have left.
  WorkerResult serve() {
    membership_.status(-1, "serving");
    parallel::ShardServerOptions options = server_options(spec_);
    options.workers = workers();
    const auto fault = spec::parse_fault(spec_.comm.fault);
    options.before_update = [&](int64_t number) {
      if (fault && fault->rank == world_.rank) inject(*fault, number, "update");
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
    tasks::TaskSetup setup = load(group);
    const at::Device device = this->device();
    const PrecisionChoice precision =
        agree_on_precision(tensor::parse_precision(spec_.compute.precision), device, *setup.model, group);
    if (!precision.note.empty()) setup.notes.push_back(precision.note);
    compute_.device = describe(device);
    compute_.precision = tensor::name_of(precision.used);
    const RunMesh mesh(spec_, group);
    Assembly assembly = assemble(spec_, setup, mesh.mesh(), group,
                                 {.device = device,
                                  .precision = precision.used,
                                  .with_servers = spec_.servers() > 0 ? &world : nullptr,
                                  .checkpoint = folder_.checkpoint(),
                                  .inputs = inputs_of(setup, data_hash_),
                                  .cut = recorded_cut(),
                                  .buffers = folder_.path,
                                  .note = world_.rank == 0 ? options_.note : nullptr,
                                  .environment = compute_.to_json()});
    const int64_t steps = assembly.steps();
    if (!options_.trace.empty()) trace_.emplace(group, steps, options_.trace_steps);
    assembly.replica().trace = trace_ ? &trace_->trace() : nullptr;
    Recorder recorder(folder_, membership_, world_.rank, steps, options_.progress, options_.stop_requested,
                      spec::parse_fault(spec_.comm.fault));
    cut_ = assembly.cut();
    open_folder(group);
    recorder.when_resumed([this] { note_settings(); });
    if (spec_.train.tensorboard) recorder.write_events();
    if (world_.rank == 0) announce(recorder, setup, assembly.parameters(), steps);
    if (!options_.resume) recorder.begin();
    recorder.watch_load(neighbours_.processes);
    look_at_network();
    const train::TrainResult trained = assembly.train(recorder, options_.resume);
    const int64_t most_memory = trained.interrupted ? 0 : peak_memory_of_all(group);
    std::vector<record::StageRecord> stages;
    if (!trained.interrupted && assembly.pipeline() != nullptr) {
      const int64_t made = trained.steps - recorder.first_step();
      stages = gather_stages(spec_, cut_, group,
                             stage_record(*assembly.pipeline(), recorder.own_step(), trained.own_sent, made));
    }
    if (!trained.interrupted) assembly.collect_model();
    std::vector<ModelShape> shapes;  // of each stage
    if (!trained.interrupted && placement_ && assembly.pipeline() != nullptr)
      shapes = gather_shapes(spec_, assembly.replica(), group);
    const std::string traced =
        trace_ ? trace_->gather(mesh.mesh(), spec_.layout(), options_.command) : std::string();
    WorkerResult result;
    result.interrupted = trained.interrupted;
    recorder.finish(trained.steps);
    if (trained.interrupted) {
      recorder.say(fmt::format("stopped after step {}; continue with --resume --out {}", trained.steps,
                               folder_.path.string()));
    } else if (world_.rank == 0) {
      if (trained.ended != "steps") {
        recorder.say(fmt::format("ended after step {} of {}: {}", trained.steps, steps, trained.ended));
      }
      membership_.status(trained.steps, "saving the model");
      result.record =
          conclude(setup, recorder, trained, most_memory, assembly.replica(), std::move(stages), shapes);
      for (const std::string& line : summary_of(*result.record)) recorder.say(line);
    }
    // Last of all: a run that fails leaves none.
    if (!traced.empty()) {
      write_file_atomically(options_.trace, traced);
      recorder.say(fmt::format("trace: {} (open it in ui.perfetto.dev or chrome://tracing)", options_.trace));
    }
    return result;
  }

  /// Collective. Some workers wait long for others here: one host has its tokens, another makes them. Those
  /// that die meanwhile are noticed by the lifeline.
  tasks::TaskSetup load(comm::Metered& group) {
    membership_.status(-1, "loading");
    group.set_timeout(std::max(timeout(), std::chrono::milliseconds(std::chrono::hours(24))));
    spec_.task.auto_cache = (spec::folder_around(folder_.path) / ".token-cache").string();
    tasks::TaskSetup setup = tasks::family_of(spec_.task.name).make(spec_, group);
    if (options_.keep_one_copy) options_.keep_one_copy(group, setup.train, setup.test);
    data_hash_ = hash_of(setup);
    comm::agree(group, in_words(setup), "");
    group.set_timeout(timeout());
    return setup;
  }

  /// A library's stack trace is for a report, not for the eye: it goes into this rank's log. Where that is.
  std::string log_whole(const std::string& text) {
    if (folder_.path.empty() || text.find('\n') == std::string::npos) return "";
    const std::filesystem::path log = folder_.path / fmt::format("rank{}.log", world_.rank);
    std::ofstream file(log, std::ios::app);
    if (!(file << text << std::endl)) return "";
    return log.string();
  }

  [[noreturn]] void report(const std::string& sentence, ExitCode code) {
    membership_.fail(sentence, static_cast<int>(code));
    throw ReportedError(code, sentence);
  }

  /// The others wait for rank 0 meanwhile: shorter than they do, longer than a holder is silent.
  std::chrono::milliseconds lock_patience() const {
    return std::chrono::milliseconds(
        static_cast<int64_t>(1e3 * std::clamp(0.6 * spec_.comm.timeout, 6.0, 12.0)));
  }

  void choose_folder_together(comm::Group& group) {
    folder_.path = options_.out;
    if (group.rank() == 0 && !options_.folder_is_ready) {
      claimed_ = spec::claim_folder(spec_, {.out = options_.out,
                                            .resume = options_.resume,
                                            .extend = options_.extend,
                                            .command = options_.command,
                                            .patience = lock_patience(),
                                            .note = options_.note});
      folder_ = claimed_->folder;
      notes_ = claimed_->notes;
    } else if (group.rank() == 0 && options_.resume) {
      notes_ = spec::resume_settings(spec_, folder_, options_.extend);
    }
    // Others may not see the folder: rank 0 tells them what a run that resumes has its batches from.
    nlohmann::json chosen{folder_.path.string(), spec_.train.batch_size, spec_.train.global_batch,
                          spec_.train.arrange};
    chosen = nlohmann::json::parse(comm::broadcast_text(group, chosen.dump(), 0));
    folder_.path = chosen.at(0).get<std::string>();
    spec_.train.batch_size = chosen.at(1);
    spec_.train.global_batch = chosen.at(2);
    spec_.train.arrange = chosen.at(3);
  }

  /// Only now that everything is loaded: a run that cannot begin leaves nothing behind, and one that cannot
  /// resume (which its checkpoint shows) leaves its folder as it was.
  void open_folder(comm::Group& group) {
    if (world_.rank == 0 && !options_.resume) note_settings();
    group.barrier();  // rank 0 sweeps out what an earlier run left: nobody writes before that
    make_folder(folder_.path);
  }

  /// Rank 0 of a run that resumes: how its model was cut into stages; empty: not known.
  std::string recorded_cut() const {
    std::error_code ignored;
    if (!options_.resume || world_.rank != 0 || !std::filesystem::exists(folder_.environment(), ignored))
      return "";
    const auto environment = nlohmann::json::parse(
        read_file(folder_.environment(), "the record of a run's machine"), nullptr, false);
    return environment.is_object() ? environment.value("cut", "") : "";
  }

  /// Rank 0 of a run on an emulated network: how that stands before the first step.
  void look_at_network() {
    if (world_.rank == 0 && placement_) lab_before_ = report_of_lab(options_.note);
  }

  /// The run begins or goes on: with these settings, on this machine.
  void note_settings() {
    if (placement_) {
      make_folder(folder_.path);
      write_file_atomically(folder_.network(), network::to_toml(placement_->topology));
    }
    if (!options_.folder_is_ready || options_.resume) spec::start_folder(folder_, spec_);
    std::filesystem::remove(folder_.done());
    nlohmann::ordered_json environment = compute_.to_json();
    environment["launcher"] = world_.launcher;
    environment["backend"] = membership_.backend;
    environment["workers"] = workers();
    if (spec_.servers() > 0) environment["servers"] = spec_.servers();
    if (!cut_.empty()) environment["cut"] = cut_;
    environment["provenance"] = record::to_json(provenance_);
    write_file_atomically(folder_.environment(), environment.dump(2) + "\n");
  }

  void announce(Recorder& recorder, const tasks::TaskSetup& setup, int64_t parameters, int64_t steps) {
    recorder.say(compute_.sentence());
    if (placement_) recorder.say("network: " + network_in_words(spec_, *placement_));
    const Opening opening{.spec = spec_,
                          .setup = setup,
                          .parameters = parameters,
                          .steps = steps,
                          .launcher = world_.launcher,
                          .backend = membership_.backend,
                          .cut = cut_,
                          .folder = folder_.path};
    for (const std::string& line : lines_of(opening)) recorder.say(line);
    for (const std::string& note : notes_) recorder.say(note_line(note));
    for (const std::string& note : setup.notes) recorder.say(note_line(note));
    if (const std::string note = spec::rare_averages(spec_, steps); !note.empty())
      recorder.say(note_line(note));
  }

  /// What is told of the machine of a run that was done before this process is as it was.
  void keep_circumstances(record::RunRecord& record) const {
    std::error_code ignored;
    if (!options_.resume || !std::filesystem::exists(folder_.result(), ignored)) return;
    if (const auto before = record::read_run(folder_.path).result) run::keep_circumstances(*before, record);
  }

  /// Of the worker that held most. Collective.
  static int64_t peak_memory_of_all(comm::Group& group) {
    const at::Tensor most = at::full({1}, peak_memory(), at::kLong);
    group.all_reduce(most, comm::Op::kMax).wait();
    return most.item<int64_t>();
  }

  record::RunRecord conclude(const tasks::TaskSetup& setup, const Recorder& recorder,
                             const train::TrainResult& trained, int64_t most_memory,
                             const parallel::Replica& replica, std::vector<record::StageRecord> stages,
                             const std::vector<ModelShape>& shapes) {
    record::RunRecord record;
    record.task = spec_.task.name;
    record.model = spec_.model.init_from.empty() ? spec_.model.name : spec_.model.init_from;
    record.strategy = spec_.strategy.name;
    record.codec = spec_.codec.name;
    record.workers = workers();
    summarise(recorder.steps(), record);
    // Where workers run free each step is one worker's, else all make it.
    const int64_t made = std::max<int64_t>(1, record.steps) * (spec_.runs_free() ? 1 : workers());
    record.bytes_sent_per_step = trained.bytes_sent / static_cast<double>(made);
    if (trained.sent && world_.size > 1) note_traffic(*trained.sent, static_cast<double>(made), record);
    record.global_batch = spec_.examples_per_step() / (spec_.runs_free() ? workers() : 1);
    if (spec_.runs_free()) {  // steps of different workers pass at the same time
      record.train_seconds = trained.seconds;
      record.examples_per_s = static_cast<double>(record.examples) / trained.seconds;
      record.updates = trained.updates;
      record.staleness = trained.staleness;
    }
    record.epochs = trained.epochs;
    record.eval = trained.eval;
    record.validation = trained.validation;
    record.keep = trained.kept_best ? "best" : "last";
    record.kept_step = trained.kept_step;
    record.run_dir = folder_.path.string();
    record.init_from = spec_.model.init_from;
    record.device = compute_.device;
    record.precision = compute_.precision;
    record.skipped_steps = trained.skipped;
    record.shares = trained.shares;
    record.ended = trained.ended;
    record.data_hash = data_hash_;
    record.start_hash = trained.start_hash;
    record.test_hash = hexadecimal(setup.test->fingerprint());
    record.cpu = compute_.cpu;
    record.cores = machine_cores();
    record.threads = compute_.threads;
    record.outside_load = recorder.outside_load();
    record.peak_memory = most_memory;
    record.noise_scale = trained.noise_scale;
    record.worker_evals = trained.worker_evals;
    record.provenance = provenance_;
    if (!cut_.empty()) record.pipeline = pipeline_record(spec_, cut_);
    record.stages = std::move(stages);
    if (lab_before_) {
      if (const auto now = report_of_lab(options_.note)) {
        const emulation::LabReport meanwhile = emulation::between(*lab_before_, *now);
        record.network = network_record(spec_, *placement_, meanwhile, trained.steps - recorder.first_step());
        if (meanwhile.changed > 0 && options_.note)
          options_.note("times of this run do not count: " + why_not_trusted(meanwhile));
      }
    }
    const bool trained_here = trained.steps > recorder.first_step();
    if (!trained_here) keep_circumstances(record);
    spec::save_model(folder_.model(), setup.save);
    const auto write_result = [&] {
      write_file_atomically(folder_.result(), record::readable(record::to_json(record)));
    };
    write_result();
    // Measures a little: only now that nothing can be lost by it.
    if (lab_before_ && trained_here) {
      record.predicted = spec_.pipeline.stages > 1 ? predict_run(spec_, *placement_, record, shapes)
                                                   : predict_run(spec_, *placement_, record, replica);
    }
    if (record.predicted) write_result();
    write_file_atomically(folder_.done(), "");
    return record;
  }

  spec::RunSpec spec_;
  World world_;
  WorkerOptions options_;
  ComputeSetup compute_;
  comm::Neighbours neighbours_;
  std::optional<Placement> placement_;  ///< on the network of the spec
  std::optional<emulation::LabReport> lab_before_;
  comm::Membership membership_;
  record::RunFolder folder_;
  std::optional<spec::ClaimedFolder> claimed_;  ///< at rank 0, unless our launcher holds it
  std::vector<std::string> notes_;
  record::Provenance provenance_;
  std::string data_hash_;
  std::string cut_;                ///< blocks of each stage; empty: the model is whole
  std::optional<RunTrace> trace_;  ///< none: nobody asked
};

}  // namespace

WorkerResult run_worker(spec::RunSpec spec, const World& world, const WorkerOptions& options,
                        std::unique_ptr<comm::Group> group) {
  return Worker(std::move(spec), world, options).run(std::move(group));
}

}  // namespace syncopate::run
