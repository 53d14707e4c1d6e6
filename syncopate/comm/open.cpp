#include "syncopate/comm/open.h"

#include "syncopate/base/error.h"
#include "syncopate/comm/agent_store.h"
#include "syncopate/comm/gloo.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/comm/machine.h"
#include "syncopate/comm/mpi.h"
#include "syncopate/comm/shm.h"
#include "syncopate/comm/staged.h"

namespace syncopate::comm {
namespace {

/// Whether all ranks are on one host. Throws ConfigError where they were asked for different backends.
/// Collective.
bool share_a_host(lifeline::Lifeline& line, const CommOptions& options) {
  const auto key = [](int rank) { return fmt::format("host/{}", rank); };
  constexpr const char *kVerdict = "hosts", *kOne = "one", *kSeveral = "several";
  const lifeline::Lifeline::Waiting waiting(line);
  line.set(key(line.rank()), options.backend + " " + host_id());
  if (line.rank() == 0) {
    std::string verdict = kOne;
    for (int rank = 1; rank < line.size(); ++rank) {
      const std::string theirs = line.get(key(rank), options.timeout);
      const std::string backend = theirs.substr(0, theirs.find(' '));
      if (backend != options.backend) {
        verdict = fmt::format("rank {} was asked for the backend {} and rank 0 for {}; give all the same",
                              rank, backend, options.backend);
        break;
      }
      if (theirs.substr(backend.size() + 1) != host_id()) verdict = kSeveral;
    }
    line.set(kVerdict, verdict);
  }
  const std::string verdict = line.get(kVerdict, options.timeout);
  if (verdict != kOne && verdict != kSeveral) throw ConfigError("{}", verdict);
  return verdict == kOne;
}

/// Null: the ranks have no memory in common, or are not to use it. Every rank comes to the same result.
std::unique_ptr<Group> try_shm(const std::shared_ptr<lifeline::Lifeline>& line, const CommOptions& options,
                               bool one_host) {
  const bool asked = options.backend == "shm";
  if (options.backend == "gloo") return nullptr;
  if (!one_host) {
    if (!asked) return nullptr;
    throw ConfigError("the backend shm is for the workers of one host, but these run on several; use gloo");
  }
  try {
    return open_shm(line, options.timeout);
  } catch (const ConfigError&) {
    if (asked) throw;
    return nullptr;
  }
}

void open_group(Membership& membership, const CommOptions& options) {
  const std::shared_ptr<lifeline::Lifeline>& line = membership.lifeline;
  const bool one_host = share_a_host(*line, options);
  std::unique_ptr<Group> group;
  if (options.backend == "mpi") {
    group = open_mpi(line, options.timeout);
    membership.backend = "mpi";
  } else if ((group = try_shm(line, options, one_host))) {
    membership.backend = "shm";
  } else {
    group = open_gloo(line, options.timeout, options.interface_address);
    membership.backend = "gloo";
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
  if (backend != "auto" && backend != "gloo" && backend != "shm" && backend != "mpi" && backend != "nccl")
    throw ConfigError("a backend is auto, gloo, shm, mpi or nccl, got \"{}\"", backend);
  Membership membership;
  if (options.size == 1) {
    membership.group = open_alone();
    return membership;
  }
  if (backend == "mpi") require_mpi(options.size);
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
