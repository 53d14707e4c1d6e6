#include "syncopate/run/probe/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "syncopate/base/error.h"
#include "syncopate/base/process.h"
#include "syncopate/base/text.h"
#include "syncopate/comm/together/machine.h"
#include "syncopate/emulation/lab.h"
#include "syncopate/run/claims.h"
#include "syncopate/run/compute.h"
#include "syncopate/run/placement.h"
#include "syncopate/run/probe/local_costs.h"
#include "syncopate/run/probe/step_probe.h"
#include "syncopate/run/worker.h"

namespace syncopate::run {
namespace {

using std::chrono::milliseconds;

Seat seat_of_this_process() {
  const char* const text = ::getenv("SYNCOPATE_LAB_HOST");
  const auto number = text == nullptr ? std::nullopt : parse_integer(text);
  if (const auto lab = number ? emulation::inside() : std::nullopt) {
    const network::Host& host = lab->topology().hosts().at(static_cast<size_t>(*number));
    return {.host = host.name, .region = host.region, .machine = comm::machine_id()};
  }
  return {.host = host_name(), .region = host_name(), .machine = comm::machine_id()};
}

class Probe {
 public:
  Probe(const spec::RunSpec& spec, const World& world, const ProbeOptions& options)
      : spec_(spec),
        world_(world),
        options_(options),
        timeout_(milliseconds(std::llround(1e3 * spec.comm.timeout))),
        style_(world.rank == 0 ? options.progress : Progress::Style::kNone) {}

  ProbeResult run() {
    membership_ =
        join(world_, spec_.comm.backend, timeout_, claims_of(spec_, world_, "", false), options_.note);
    if (membership_.lifeline && options_.give_up) {
      membership_.lifeline->watch(
          [this](const lifeline::Failure& failure) { options_.give_up(failure.for_others()); });
    }
    try {
      ProbeResult result = measure();
      membership_.leave();
      return result;
    } catch (const CommError& error) {
      if (membership_.lifeline) {
        if (const auto failure = membership_.lifeline->await_failure(milliseconds(500)))
          throw ReportedError(ExitCode::kComm, failure->for_others());
      }
      report(error.what(), error.code());
    } catch (const Error& error) {
      report(error.what(), error.code());
    } catch (const std::exception& error) {
      report(fmt::format("unexpected failure: {}; please report it", first_line(error.what())),
             ExitCode::kInternal);
    }
  }

 private:
  [[noreturn]] void report(const std::string& sentence, ExitCode code) {
    membership_.fail(sentence, static_cast<int>(code));
    throw ReportedError(code, sentence);
  }

  ProbeResult measure() {
    ProbeResult result;
    const comm::Neighbours here = comm::neighbours(*membership_.group);
    const ComputeSetup compute = set_up_compute(
        spec_.compute.threads > 0 ? static_cast<int>(spec_.compute.threads) : default_threads(here.ranks));
    Seat seat = seat_of_this_process();
    membership_.status(-1, "measuring links");
    const auto lab_before = world_.rank == 0 ? report_of_lab(options_.note) : std::nullopt;
    if (world_.size > 1) {
      Progress progress(style_, 1, "pair");
      const int64_t pairs = options_.links ? 1 : 0;
      result.network =
          probe_links(*membership_.lifeline, {.seat = std::move(seat),
                                              .measures = pairs > 0,
                                              .seconds = options_.seconds,
                                              .timeout = timeout_,
                                              .progress = [&](int done, int all, const std::string& what) {
                                                progress.expect(all);
                                                progress.update(done, 0, {what});
                                              }});
      result.links = options_.links;
    } else {
      result.network =
          MeasuredLinks{.topology = network::Topology(
                            "measured", {{.name = seat.host, .region = seat.region}}, {network::kMemory}),
                        .seats = {0}};
    }
    if (lab_before && options_.links) {
      const auto now = report_of_lab(options_.note);
      const std::string why = now ? why_not_trusted(emulation::between(*lab_before, *now)) : std::string();
      if (!why.empty() && options_.note) options_.note("do not trust these links: " + why);
    }
    if (options_.step) measure_step(compute, here.before, result);
    return result;
  }

  void measure_step(const ComputeSetup& compute, int local_rank, ProbeResult& result) {
    membership_.status(-1, "measuring steps");
    Progress progress(style_, 1, "part");
    sim::Profile mine = probe_step(spec_, compute,
                                   {.rank = world_.rank,
                                    .local_rank = local_rank,
                                    .batches = options_.batches,
                                    .together =
                                        [this] {
                                          if (world_.size > 1) membership_.group->barrier();
                                        },
                                    .stop_requested = options_.stop_requested,
                                    .progress =
                                        [&](int done, int all, const std::string& what) {
                                          progress.expect(all);
                                          progress.update(done, 0, {what});
                                        }});
    if (world_.rank == 0) mine.local = measure_local_costs();
    std::vector<sim::Profile> all;
    if (world_.size == 1) {
      all.push_back(mine);
    } else {
      lifeline::Lifeline& line = *membership_.lifeline;
      line.set(fmt::format("probe/profile/{}", world_.rank), sim::to_json(mine).dump());
      for (int rank = 0; rank < world_.size && world_.rank == 0; ++rank) {
        all.push_back(sim::profile_from_json(nlohmann::ordered_json::parse(
            line.get(fmt::format("probe/profile/{}", rank), std::chrono::hours(1)))));
      }
      if (world_.rank == 0) line.set("probe/profiled", "yes");
      line.get("probe/profiled", std::chrono::hours(1));
    }
    if (world_.rank != 0) return;
    const std::vector<int>& seats = result.network->seats;
    // The profile is that of the first host's devices; others are so many times as fast.
    std::vector<sim::Profile> of_first;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (result.network->one_machine || seats[rank] == seats[0]) of_first.push_back(all[rank]);
    }
    result.profile = mean_of(of_first);
    set_speeds(all, *result.network);
  }

  static double seconds_of(const sim::Profile& profile) {
    double sum = 0;
    for (const sim::BatchTime& time : profile.times) sum += time.forward_s + time.backward_s + time.update_s;
    return sum;
  }

  /// Hosts on one machine are as fast as each other, whatever noise says.
  static void set_speeds(const std::vector<sim::Profile>& all, MeasuredLinks& network) {
    constexpr double kAlike = 0.05;
    std::vector<network::Host> hosts = network.topology.hosts();
    std::vector<double> sums(hosts.size(), 0.0);
    for (size_t rank = 0; rank < all.size(); ++rank)
      sums[static_cast<size_t>(network.seats[rank])] += seconds_of(all[rank]);
    for (size_t host = 0; host < hosts.size() && !network.one_machine; ++host) {
      const double speed = (sums[0] / hosts[0].devices) / (sums[host] / hosts[host].devices);
      if (std::abs(speed - 1) > kAlike) hosts[host].speed = std::stod(fmt::format("{:.3g}", speed));
    }
    std::vector<network::Link> links;
    for (int a = 0; a < network.topology.size(); ++a)
      for (int b = 0; b < network.topology.size(); ++b) links.push_back(network.topology.link(a, b));
    network.topology = network::Topology(network.topology.name(), std::move(hosts), std::move(links));
  }

  const spec::RunSpec& spec_;
  const World& world_;
  const ProbeOptions& options_;
  milliseconds timeout_;
  Progress::Style style_;
  comm::Membership membership_;
};

}  // namespace

ProbeResult run_probe(const spec::RunSpec& spec, const World& world, const ProbeOptions& options) {
  return Probe(spec, world, options).run();
}

}  // namespace syncopate::run
