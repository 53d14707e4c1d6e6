#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/file.h"
#include "syncopate/base/standard_error.h"
#include "syncopate/base/text.h"
#include "syncopate/cli/commands.h"
#include "syncopate/cli/interrupt.h"
#include "syncopate/cli/probe_process.h"
#include "syncopate/cli/run_options.h"
#include "syncopate/lab/check.h"
#include "syncopate/plan/advice.h"
#include "syncopate/spec/strategies.h"

namespace syncopate::cli {
namespace {

constexpr const char* kMeasured = "measured";

struct AdviseArguments {
  SpecArguments settings;
  std::string profile, out;
  int64_t check = -1;
  double seconds = 15;
  bool one_machine = false, everything = false, json = false;
};

/// Takes --workers out of what was given: here it may be a list.
std::vector<int64_t> take_workers(SpecArguments& settings) {
  std::string text;
  std::erase_if(settings.given, [&](const auto& given) {
    if (given.first != "comm.workers") return false;
    text = given.second;
    return true;
  });
  if (text.empty()) throw ConfigError("advise needs --workers N, or several: --workers 2,4,8");
  std::vector<int64_t> workers;
  for (const std::string_view part : split(text, ',')) {
    const auto number = parse_integer(trim(part));
    if (!number || *number < 1)
      throw ConfigError("--workers takes a number, or several such as 2,4,8; got \"{}\"", text);
    workers.push_back(*number);
  }
  if (workers.size() == 1) {  // up to it, in doublings
    for (int64_t fewer = 2; fewer < workers.front(); fewer *= 2) workers.push_back(fewer);
  }
  std::sort(workers.begin(), workers.end());
  workers.erase(std::unique(workers.begin(), workers.end()), workers.end());
  return workers;
}

std::string error_for_people(double error) { return fmt::format("{:+.0f} %", 100 * error); }

void print_table(const plan::Advice& advice, const std::vector<size_t>& rows) {
  const bool priced = std::any_of(advice.rows.begin(), advice.rows.end(),
                                  [](const plan::AdviceRow& row) { return row.price_epoch > 0; });
  size_t width = 8;
  for (const size_t i : rows) width = std::max(width, columns_of(advice.rows[i].spec.label()));
  fmt::print("{:>3}  {:<{}}  {:>7}  {:>9}  {:>8}  {:>9}  {:>10}  {:>9}  {:>9}{}  {}\n", "", "strategy", width,
             "workers", "ms", "compute", "exchange", "examples/s", "sent", "memory",
             priced ? "  epoch costs" : "", "worth it");
  for (const size_t i : rows) {
    const plan::AdviceRow& row = advice.rows[i];
    const sim::Prediction& step = row.predicted;
    fmt::print("{:>3}  {:<{}}  {:>7}  {:>9.1f}  {:>8.1f}  {:>9.1f}  {:>10.1f}  {:>9}  {:>9}{}  {}{}\n", i + 1,
               row.spec.label(), width, row.spec.comm.workers, step.ms, step.compute_ms, step.exchange_ms,
               step.examples_per_s, bytes_for_people(step.bytes_per_step),
               step.memory > 0 ? bytes_for_people(step.memory) : "-",
               priced ? fmt::format("  {:>11.2f}", row.price_epoch) : "",
               row.worth_it ? "yes: " : "no: ", row.why);
  }
}

void print_checks(const plan::Advice& advice) {
  size_t width = 8;
  for (const plan::AdviceRow& row : advice.rows) width = std::max(width, columns_of(row.spec.label()));
  fmt::print("\n{:<{}}  {:>7}  {:>12}  {:>11}  {:>6}\n", "checked", width, "workers", "predicted ms",
             "measured ms", "error");
  for (const plan::AdviceRow& row : advice.rows) {
    if (row.measured) {
      fmt::print("{:<{}}  {:>7}  {:>12.1f}  {:>11.1f}  {:>6}{}\n", row.spec.label(), width,
                 row.spec.comm.workers, row.predicted.ms, row.measured->ms, error_for_people(row.error()),
                 row.measured->trustworthy ? "" : "  (the machine was too busy to emulate the network well)");
    } else if (!row.failed.empty()) {
      fmt::print("{:<{}}  {:>7}  could not be run: {}\n", row.spec.label(), width, row.spec.comm.workers,
                 row.failed);
    }
  }
  if (const auto median = advice.error_at(0.5)) {
    fmt::print("error of ms per iteration: median {:.0f} %, 90th percentile {:.0f} %\n", 100 * *median,
               100 * *advice.error_at(0.9));
  }
}

/// The best, what it is compared with, and the first of every strategy.
std::vector<size_t> rows_to_show(const plan::Advice& advice, bool everything) {
  constexpr size_t kBest = 10;
  std::vector<size_t> rows;
  std::set<std::string> seen;
  for (size_t i = 0; i < advice.rows.size(); ++i) {
    const bool first = seen.insert(advice.rows[i].spec.strategy.name).second;
    if (everything || i < kBest || first || i == advice.alone || i + 1 == advice.rows.size() ||
        advice.rows[i].measured)
      rows.push_back(i);
  }
  return rows;
}

std::string recommendation(const plan::Advice& advice) {
  const plan::AdviceRow& best = advice.rows.front();
  if (advice.rows.size() == 1)
    return "one worker was looked at, and nothing else; --workers N compares it with up to N";
  if (best.spec.comm.workers == 1)
    return "one worker is faster than any other number that was looked at on this network";
  const double gain = best.predicted.examples_per_s / advice.rows[advice.alone].predicted.examples_per_s;
  std::string line =
      fmt::format("fastest: {} with {} workers, {:.0f} examples/s, {:.1f} times one worker",
                  best.spec.label(), best.spec.comm.workers, best.predicted.examples_per_s, gain);
  const auto plain = std::find_if(advice.rows.begin(), advice.rows.end(), [](const plan::AdviceRow& row) {
    return row.spec.codec.name == "none" &&
           spec::strategy_info(row.spec.strategy.name).rhythm == spec::Rhythm::kTogether;
  });
  if (plain != advice.rows.begin() && plain != advice.rows.end()) {
    line += fmt::format("; fastest that trains as one worker would: {} with {} worker{}, {:.0f} examples/s",
                        plain->spec.label(), plain->spec.comm.workers,
                        plain->spec.comm.workers == 1 ? "" : "s", plain->predicted.examples_per_s);
  }
  return line;
}

/// Fills in where compute comes from, where no file was given: probes on this machine.
void take_profiles(const AdviseArguments& arguments, plan::AdviceRequest& request) {
  if (!arguments.profile.empty()) {
    const sim::Profile& profile = request.profiles.begin()->second;
    const int64_t threads = request.base.compute.threads;
    if (!request.one_machine) return say_cores(profile, 1, threads);
    for (const int64_t workers : request.workers) say_cores(profile, workers, threads);
    return;
  }
  std::vector<int64_t> counts{1};
  // Where every worker has its own machine, one alone says what it takes.
  if (request.one_machine) counts.insert(counts.end(), request.workers.begin(), request.workers.end());
  for (const int64_t count : counts) {
    if (!request.profiles.contains(count)) request.profiles[count] = measure_profile(request.base, count);
  }
}

int advise(AdviseArguments& arguments) {
  plan::AdviceRequest request;
  request.workers = take_workers(arguments.settings);
  if (arguments.check == 0 || arguments.check < -1)
    throw ConfigError("--check takes how many of the best to run, 1 or more; got {}", arguments.check);
  std::vector<std::string> given;
  spec::RunSpec& base = request.base;
  base = make_spec(arguments.settings, given);
  if (!arguments.profile.empty()) {  // before anything takes long
    const sim::Profile profile = sim::read_profile(arguments.profile);
    use_profile(profile, base, given);
    request.profiles[profile.workers] = profile;
  }
  for (const char* name : {"strategy.name", "codec.name"}) {
    if (std::count(given.begin(), given.end(), name) > 0)
      throw ConfigError("advise looks at every strategy and codec: leave --{} out",
                        std::string(name).substr(0, std::string(name).find('.')));
  }
  if (base.network.name.empty())
    throw ConfigError(
        "advise needs --network: a cluster file, a preset, or \"measured\" for this machine's links");
  base.comm.workers = request.workers.back();
  base.train.global_batch = base.examples_per_step();
  base.train.batch_size = 0;
  const bool measured = base.network.name == kMeasured;
  request.one_machine = arguments.one_machine || arguments.check > 0 || measured;
  if (measured) {
    if (!base.network.hosts.empty()) throw ConfigError("--hosts goes with a network that has several");
    base.network.name.clear();
    MeasuredMachine machine = measure_machine(base, request.workers.back());
    request.topology = machine.topology.scaled(base.network.scale);
    if (arguments.profile.empty()) request.profiles[request.workers.back()] = std::move(machine.profile);
  } else {
    request.topology = network::load(base.network.name).scaled(base.network.scale);
    const auto most = static_cast<int>(request.workers.back());
    network::seats(request.topology, base.network.hosts,
                   most);  // says what does not fit before anything runs
  }
  take_profiles(arguments, request);
  plan::Advice advice = plan::advise(request);
  if (arguments.check > 0) {
    std::unique_ptr<ScratchFolder> scratch;
    std::filesystem::path folder = std::filesystem::path(arguments.out) / "check";
    if (arguments.out.empty()) {
      scratch = std::make_unique<ScratchFolder>();
      folder = *scratch / "check";
    }
    make_folder(folder);
    catch_interrupts();
    const auto chosen = plan::rows_to_check(advice, static_cast<size_t>(arguments.check));
    for (size_t i = 0; i < chosen.size() && !interrupted(); ++i) {
      plan::AdviceRow& row = advice.rows[chosen[i]];
      tell("checking {} of {}: {} with {} worker{}", i + 1, chosen.size(), row.spec.label(),
           row.spec.comm.workers, row.spec.comm.workers == 1 ? "" : "s");
      lab::check_row(row, {.folder = folder, .seconds = arguments.seconds, .stop_requested = interrupted});
    }
    if (interrupted()) return static_cast<int>(ExitCode::kInterrupted);
  }
  const nlohmann::ordered_json json = plan::to_json(advice, request);
  if (!arguments.out.empty()) {
    make_folder(arguments.out);
    write_file_atomically(std::filesystem::path(arguments.out) / "advice.json", json.dump(1) + "\n");
  }
  if (arguments.json) {
    fmt::print("{}\n", json.dump());
    return 0;
  }
  fmt::print("{} · {} · {} examples a step · network {}{} · {}\n\n", base.task.name, base.model.name,
             base.examples_per_step(), request.topology.name(),
             base.network.scale == 1 ? "" : fmt::format(" / {:g}", base.network.scale),
             request.one_machine ? "all workers compute on this machine"
                                 : "every worker computes like this machine, times its host's speed");
  print_table(advice, rows_to_show(advice, arguments.everything));
  if (arguments.check > 0) print_checks(advice);
  fmt::print("\n{}\n", recommendation(advice));
  fmt::print(
      "This is speed alone: what rare averages and compression cost in quality is for `syncopate "
      "compare`.\n");
  if (!arguments.out.empty())
    tell("written: {}", (std::filesystem::path(arguments.out) / "advice.json").string());
  return 0;
}

}  // namespace

Command add_advise(Program& program) {
  CLI::App* app = program.app.add_subcommand(
      "advise", "Say which strategy, codec and number of workers is fastest on a network");
  auto arguments = std::make_shared<AdviseArguments>();
  const auto option = [&](const char* type, const char* name, auto& target, const char* help) {
    return app->add_option(name, target, help)->group("Advice")->type_name(type);
  };
  option("FILE", "--profile", arguments->profile,
         "what a step costs, from `syncopate probe --profile` (default: measured now)");
  option("K", "--check", arguments->check,
         "run the K best, plain ddp and the worst, and print measured beside predicted");
  option("SECONDS", "--check-seconds", arguments->seconds, "roughly how long each of them trains")
      ->capture_default_str();
  app->add_flag("--one-machine", arguments->one_machine,
                "all workers compute on this machine, as in the lab (so with --check and --network measured)")
      ->group("Advice");
  option("FOLDER", "--out", arguments->out,
         "write advice.json into this folder, and the runs of --check into its folder check");
  app->add_flag("--all", arguments->everything, "show every row")->group("Advice");
  app->add_flag("--json", arguments->json, "print advice.json instead of the table")->group("Advice");
  add_spec_options(program, *app, arguments->settings);
  program.notes[app] = {
      "Takes the settings of `train` but --strategy and --codec, of which it looks at all. --workers N looks "
      "at "
      "1, 2, 4 and so on up to N, --workers 2,6 at these and 1; all train on the same global batch. "
      "--network "
      "measured takes the links of this machine.",
      "It predicts speed. What a strategy costs in quality, `syncopate compare` measures."};
  program.examples[app] = {
      "syncopate advise --network two-sites --scale 10 --task supersense --model bert-tiny --workers 4",
      "syncopate advise --network worldwide --workers 2,4 --global-batch 64 --check 2 --out advice"};
  return [arguments] { return advise(*arguments); };
}

}  // namespace syncopate::cli
