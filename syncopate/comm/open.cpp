#include "syncopate/comm/open.h"

#include "syncopate/base/error.h"
#include "syncopate/comm/agent_store.h"
#include "syncopate/comm/gloo.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/comm/machine.h"
#include "syncopate/comm/shm.h"
#include "syncopate/comm/staged.h"

namespace syncopate::comm {
namespace {

/// Whether all ranks are on one host. Collective.
bool on_one_host(lifeline::Lifeline& line, std::chrono::milliseconds timeout) {
  const auto host_of = [](int rank) { return fmt::format("host/{}", rank); };
  constexpr const char* kVerdict = "one-host";
  const lifeline::Lifeline::Waiting waiting(line);
  line.set(host_of(line.rank()), host_id());
  if (line.rank() == 0) {
    bool one = true;
    for (int rank = 1; rank < line.size(); ++rank) one = line.get(host_of(rank), timeout) == host_id() && one;
    line.set(kVerdict, one ? "yes" : "no");
  }
  return line.get(kVerdict, timeout) == "yes";
}

/// Null: the ranks have no memory in common. Every rank comes to the same result.
std::unique_ptr<Group> try_shm(const std::shared_ptr<lifeline::Lifeline>& line, const CommOptions& options) {
  if (options.backend == "gloo") return nullptr;
  const bool asked = options.backend == "shm";
  if (!on_one_host(*line, options.timeout)) {
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

}  // namespace

void Membership::status(int64_t step, std::string_view phase) {
  if (lifeline) lifeline->status(step, phase);
}

void Membership::fail(std::string_view sentence, int exit_code) {
  if (lifeline) lifeline->fail(sentence, exit_code);
}

void Membership::leave() {
  group.reset();
  if (lifeline) lifeline->goodbye();
  if (server) server->close();
}

Membership open(const CommOptions& options) {
  Membership membership;
  if (options.size == 1) {
    membership.group = open_alone();
    return membership;
  }
  lifeline::Connection connection = lifeline::rendezvous(options.rendezvous,
                                                         {.rank = options.rank,
                                                          .size = options.size,
                                                          .timeout = options.timeout,
                                                          .claims = options.claims,
                                                          .note = options.note},
                                                         open_agent_store);
  membership.server = std::move(connection.server);
  membership.lifeline = std::move(connection.lifeline);
  std::unique_ptr<Group> group = try_shm(membership.lifeline, options);
  membership.backend = group ? "shm" : "gloo";
  if (!group) group = open_gloo(membership.lifeline, options.timeout, options.interface_address);
  membership.group = staged(std::move(group));
  return membership;
}

}  // namespace syncopate::comm
