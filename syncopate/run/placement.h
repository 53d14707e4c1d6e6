#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/emulation/lab.h"
#include "syncopate/network/topology.h"
#include "syncopate/record/record.h"
#include "syncopate/spec/run_spec.h"

// Runs on the network of `network.name`.
namespace syncopate::run {

/// Where the processes of a run sit.
struct Placement {
  network::Topology topology{};  ///< hosts that take part, in the order of their first use, at emulated rates
  std::vector<int> seats{};      ///< the host of each process: workers, then servers
};

/// Throws ConfigError or DataError: no such network or host, too few devices, workers that share memory on
/// several hosts.
Placement place(const spec::RunSpec& spec, int processes);

/// Whether this process has to make the network of the spec before it starts workers. Throws ConfigError
/// inside of another lab.
bool needs_lab(const spec::RunSpec& spec);

/// What the lab that this process is inside of says of itself. Nothing where it does not answer, of which
/// `note` is told: a run goes on without.
std::optional<emulation::LabReport> report_of_lab(const std::function<void(const std::string&)>& note);

/// Why times that were measured in the lab do not count; empty: they do.
std::string why_not_trusted(const emulation::LabReport& report);

/// Runs the same command again inside of the network, for so many processes; its exit code.
int run_in_network(const spec::RunSpec& spec, int processes, char** argv);

/// What the lab says of itself, between the start of training and its end, as a run records it: links as they
/// were at its end. One that was changed meanwhile is not to be trusted. `steps`: made meanwhile.
record::NetworkRecord network_record(const spec::RunSpec& spec, const Placement& placement,
                                     const emulation::LabReport& meanwhile, int64_t steps);

/// "two-sites, rates divided by 100 · on 2 hosts: ohio-0, virginia-0".
std::string network_in_words(const spec::RunSpec& spec, const Placement& placement);

}  // namespace syncopate::run
