#include "syncopate/comm/open.h"

#include "syncopate/comm/agent_store.h"
#include "syncopate/comm/gloo.h"
#include "syncopate/comm/inproc.h"
#include "syncopate/comm/staged.h"

namespace syncopate::comm {

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
  membership.group = staged(open_gloo(membership.lifeline, options.timeout, options.interface_address));
  return membership;
}

}  // namespace syncopate::comm
