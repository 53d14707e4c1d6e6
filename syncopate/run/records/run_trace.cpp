#include "syncopate/run/records/run_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/comm/together/machine.h"

namespace syncopate::run {
namespace {

parallel::Trace::Options traced_steps(int64_t steps, int64_t traced) {
  constexpr int64_t kFirst = 2;
  return {.skip = std::clamp<int64_t>(steps - traced, 0, kFirst), .steps = traced};
}

void note(parallel::Trace& trace, const comm::Operation& operation) {
  // What stages send each other is noted by those who know what it is; losses and flags say nothing.
  const bool alone = operation.kind == comm::Kind::kSend || operation.kind == comm::Kind::kReceive;
  if (!trace.on() || operation.payload == comm::Payload::kActivations ||
      (alone && operation.payload == comm::Payload::kControl))
    return;
  trace.add(parallel::Trace::Event{
      .lane = parallel::Trace::Lane::kExchange,
      .name = fmt::format("{} of {}", comm::name_of(operation.kind), comm::name_of(operation.payload)),
      .begin = operation.begin,
      .end = operation.end,
      .bytes = static_cast<double>(operation.bytes)});
}

}  // namespace

RunTrace::RunTrace(comm::Metered& group, int64_t steps, int64_t traced)
    : group_(group), trace_(traced_steps(steps, traced)), before_(clock()) {
  group_.observe([this](const comm::Operation& operation) { note(trace_, operation); });
}

ClockReading RunTrace::clock() const {
  return compare_clocks(group_, comm::machine_id(), [this] { return trace_.now(); });
}

std::string RunTrace::gather(const parallel::Mesh& mesh, const std::vector<std::vector<int>>& layout,
                             const std::string& command) {
  group_.observe({});
  RankTrace mine{.rank = group_.rank(),
                 .before = before_,
                 .after = clock(),
                 .events = trace_.events(),
                 .messages = trace_.messages()};
  if (mesh.staged()) {
    mine.stage = mesh.stages->rank();
    mine.replica = mesh.replicas.rank();
    for (const std::vector<int>& stage : layout)
      mine.stage_ranks.push_back(stage.at(static_cast<size_t>(mine.replica)));
  }
  const std::vector<RankTrace> all = gather_traces(group_, mine);
  return group_.rank() == 0 ? trace_json(all, command) : "";
}

}  // namespace syncopate::run
