#include "syncopate/comm/open.h"

#include <algorithm>
#include <initializer_list>
#include <sstream>
#include <vector>

#include "syncopate/base/error.h"
#include "syncopate/comm/gloo/agent_store.h"
#include "syncopate/comm/gloo/gloo.h"
#include "syncopate/comm/inproc/inproc.h"
#include "syncopate/comm/mpi.h"
#include "syncopate/comm/nccl.h"
#include "syncopate/comm/shm/shm.h"
#include "syncopate/comm/staged.h"
#include "syncopate/comm/together/hosts.h"
#include "syncopate/comm/together/machine.h"
#include "syncopate/comm/two_level/two_level.h"

namespace syncopate::comm {
namespace {

/// The host of each rank. Throws ConfigError where they were asked for different backends. Collective.
std::vector<std::string> hosts_of_ranks(lifeline::Lifeline& line, const CommOptions& options) {
  const auto key = [](int rank) { return fmt::format("host/{}", rank); };
  const std::string verdict_key = "hosts", hosts_follow = "hosts\n";
  const lifeline::Lifeline::Waiting waiting(line);
  line.set(key(line.rank()), options.backend + " " + (options.host.empty() ? host_id() : options.host));
  if (line.rank() == 0) {
    std::string verdict = hosts_follow;
    for (int rank = 0; rank < line.size(); ++rank) {
      const std::string theirs = line.get(key(rank), options.timeout);
      const std::string backend = theirs.substr(0, theirs.find(' '));
      if (backend != options.backend) {
        verdict = fmt::format("rank {} was asked for the backend {} and rank 0 for {}; give all the same",
                              rank, backend, options.backend);
        break;
      }
      verdict += theirs.substr(backend.size() + 1) + "\n";
    }
    line.set(verdict_key, verdict);
  }
  const std::string verdict = line.get(verdict_key, options.timeout);
  if (verdict.find(hosts_follow) != 0) throw ConfigError("{}", verdict);
  std::istringstream lines(verdict.substr(hosts_follow.size()));
  std::vector<std::string> hosts;
  for (std::string host; std::getline(lines, host);) hosts.push_back(host);
  return hosts;
}

/// What is chosen by itself, where the ranks are.
std::string fitting(const Hosts& hosts) {
  const Seating seating = hosts.seating();
  return seating == Seating::kTwoLevels ? "shm+gloo" : seating == Seating::kOneEach ? "gloo" : "shm";
}

/// Throws ConfigError for a backend that is not for ranks that sit so.
void require_fitting(const std::string& backend, const Hosts& hosts) {
  const std::string fits = fitting(hosts);
  if (backend == "shm" && fits != "shm")
    throw ConfigError("the backend shm is for the workers of one host, but these run on several; use {}",
                      fits);
  if (backend == "shm+gloo" && fits != backend)
    throw ConfigError("the backend shm+gloo is for several hosts with several workers, but {}; use {}",
                      fits == "shm" ? "these run on one" : "each of these has its own", fits);
}

std::unique_ptr<Group> open_backend(const std::string& backend,
                                    const std::shared_ptr<lifeline::Lifeline>& line,
                                    const CommOptions& options, std::vector<std::string> hosts) {
  if (backend == "mpi") return open_mpi(line, options.timeout);
  if (backend == "shm") return open_shm(line, options.timeout);
  if (backend == "gloo") return open_gloo(line, options.timeout, options.interface_address);
  const std::string& address = options.interface_address;
  return open_two_level(std::make_shared<Waits>(line, options.timeout),
                        {.prefix = "two-level",
                         .address = address.empty() ? line->local().host : address,
                         .rank = line->rank(),
                         .hosts = std::move(hosts)});
}

void open_group(Membership& membership, const CommOptions& options) {
  const std::shared_ptr<lifeline::Lifeline>& line = membership.lifeline;
  const std::vector<std::string> names = hosts_of_ranks(*line, options);
  const Hosts hosts(names);
  require_fitting(options.backend, hosts);
  const bool chooses = options.backend == "auto" || options.backend == "nccl";
  membership.backend = chooses ? fitting(hosts) : options.backend;
  std::unique_ptr<Group> group;
  try {
    group = open_backend(membership.backend, line, options, names);
  } catch (const ConfigError&) {
    // Some have no memory in common, which every rank has learned.
    if (!chooses || membership.backend == "gloo") throw;
    membership.backend = "gloo";
    group = open_backend(membership.backend, line, options, names);
  }
  membership.group = staged(std::move(group));
}

}  // namespace

void Membership::status(int64_t step, std::string_view phase) {
  if (lifeline) lifeline->status(step, phase);
}

void Membership::fail(std::string_view sentence, int exit_code) {
  if (lifeline) lifeline->fail(sentence, exit_code);
}

void Membership::leave() {
  group.reset();
  if (backend == "mpi") close_mpi(*lifeline);
  if (lifeline) lifeline->goodbye();
  if (server) server->close();
}

Membership open(const CommOptions& options) {
  const std::string& backend = options.backend;
  const std::initializer_list<const char*> known = {"auto", "gloo", "shm", "shm+gloo", "mpi", "nccl"};
  if (std::find(known.begin(), known.end(), backend) == known.end())
    throw ConfigError("a backend is auto, gloo, shm, shm+gloo, mpi or nccl, got \"{}\"", backend);
  Membership membership;
  if (options.size == 1) {
    membership.group = open_alone();
    return membership;
  }
  if (backend == "mpi") require_mpi(options.size);
  if (backend == "nccl") require_nccl();
  lifeline::Connection connection = lifeline::rendezvous(options.rendezvous,
                                                         {.rank = options.rank,
                                                          .size = options.size,
                                                          .timeout = options.timeout,
                                                          .claims = options.claims,
                                                          .note = options.note},
                                                         open_agent_store);
  membership.server = std::move(connection.server);
  membership.lifeline = std::move(connection.lifeline);
  try {
    open_group(membership, options);
  } catch (const ConfigError& error) {
    membership.fail(error.what(), static_cast<int>(error.code()));  // a launcher reports what a rank told it
    throw;
  } catch (const CommError&) {
    // Another rank was quicker to find the same.
    const auto failure = membership.lifeline->failure();
    if (!failure || failure->exit_code != static_cast<int>(ExitCode::kConfig)) throw;
    throw ConfigError("{}", failure->for_others());
  }
  return membership;
}

}  // namespace syncopate::comm
