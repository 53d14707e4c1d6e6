#include "syncopate/comm/open.h"

#include "syncopate/base/error.h"
#include "syncopate/comm/agent_store.h"
#include "syncopate/comm/gloo.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/comm/machine.h"
#include "syncopate/comm/one_gpu.h"
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
std::unique_ptr<Group> try_shm(const std::shared_ptr<lifeline::Lifeline>& line, const CommOptions& options) {
  const bool one = share_a_host(*line, options), asked = options.backend == "shm";
  if (options.backend == "gloo") return nullptr;
  if (!one) {
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
  if (options.backend != "auto" && options.backend != "gloo" && options.backend != "shm")
    throw ConfigError("a backend is auto, gloo or shm, got \"{}\"", options.backend);
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
  try {
    std::unique_ptr<Group> group = try_shm(membership.lifeline, options);
    membership.backend = group ? "shm" : "gloo";
    if (!group) group = open_gloo(membership.lifeline, options.timeout, options.interface_address);
    membership.group = on_one_gpu(staged(std::move(group)));
  } catch (const ConfigError& error) {
    membership.fail(error.what(), static_cast<int>(error.code()));  // a launcher reports what a rank told it
    throw;
  }
  return membership;
}

}  // namespace syncopate::comm
