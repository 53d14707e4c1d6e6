#include "syncopate/sim/events/levels.h"

#include <algorithm>

namespace syncopate::sim {
namespace {

constexpr double kLevelPiece = 8 << 20;  // bytes of an all-reduce that go up, across and down at a time

}  // namespace

const Levels::Layout& Levels::layout(int group) {
  const auto found = layouts_.find(group);
  if (found != layouts_.end()) return found->second;
  Layout made;
  std::unordered_map<int, int> numbers;  // of hosts
  for (const int rank : traffic_.groups.members(group)) {
    const int next = static_cast<int>(made.hosts.size());
    const int host = numbers.try_emplace(traffic_.wires.host(rank), next).first->second;
    if (host == next) made.hosts.emplace_back();
    made.hosts[static_cast<size_t>(host)].push_back(rank);
    made.host.push_back(host);
  }
  if (made.hosts.size() > 1 && made.hosts.size() < made.host.size()) {
    std::vector<int> leaders;
    for (const std::vector<int>& ranks : made.hosts) leaders.push_back(ranks.front());
    made.leaders = traffic_.groups.add(std::move(leaders));
  }
  return layouts_[group] = std::move(made);
}

int Levels::add(Operation operation) {
  const Layout& of_group = layout(operation.group);
  const int number = traffic_.add(std::move(operation));
  if (of_group.leaders < 0) return number;
  const Operation whole = traffic_.operation(number);
  const bool summed = whole.kind == Operation::kAllReduce;
  const double most = summed ? kLevelPiece : whole.bytes;
  std::vector<double> parts;  // of hosts, where each rank has its own
  for (const std::vector<int>& ranks : of_group.hosts)
    if (!summed) parts.push_back(static_cast<double>(ranks.size()) * whole.bytes);
  std::vector<int> pieces;
  for (double from = 0; pieces.empty() || from < whole.bytes; from += most)
    pieces.push_back(traffic_.add({.kind = whole.kind,
                                   .group = of_group.leaders,
                                   .bytes = std::min(most, whole.bytes - from),
                                   .element = whole.element,
                                   .root = of_group.host[static_cast<size_t>(whole.root)],
                                   .parts = parts,
                                   .whole = number}));
  traffic_.operation(number).pieces = std::move(pieces);
  return number;
}

/// What a rank would send in one level.
double Levels::nominal_bytes(const Operation& operation, int rank) const {
  const double others = traffic_.size(operation) - 1;
  if (operation.kind == Operation::kAllReduce) return 2 * operation.bytes * others / (others + 1);
  const bool root = traffic_.place(operation, rank) == operation.root;
  if (operation.kind == Operation::kGather) return root ? 0 : operation.bytes;
  return root ? others * operation.bytes : 0;
}

/// Through the memory of a host. Where all share a machine, those who copy share its cores.
double Levels::copying_s(double bytes, int host) const {
  const network::Link& memory = traffic_.wires.memory(host);
  const double rate = std::min(memory.gbit * 1e9 / 8, bytes_per_s(traffic_.costs.copy_gbyte));
  return memory.latency_ms / 1e3 + cores_.crowd() * bytes / rate;
}

/// From a host's ranks to its leader; of a sum every rank adds a slice.
double Levels::seconds_up(const Operation& piece, const Layout& layout, int number) const {
  const std::vector<int>& here = layout.hosts[static_cast<size_t>(number)];
  const auto ranks = static_cast<double>(here.size()), all = static_cast<double>(layout.host.size());
  const int host = traffic_.wires.host(here.front());
  switch (piece.kind) {
    case Operation::kAllReduce:
      if (ranks == 1) return 0;
      return copying_s(piece.bytes * 2 * (ranks - 1) / ranks, host) +
             cores_.crowd() * piece.bytes / bytes_per_s(traffic_.costs.reduce_gbyte);
    case Operation::kScatter:
      return number == piece.root ? copying_s(all * piece.bytes, host) : 0;
    default:
      return copying_s(ranks * piece.bytes, host);
  }
}

double Levels::seconds_down(const Operation& piece, const Layout& layout, int number) const {
  const std::vector<int>& here = layout.hosts[static_cast<size_t>(number)];
  const auto ranks = static_cast<double>(here.size()), all = static_cast<double>(layout.host.size());
  const int host = traffic_.wires.host(here.front());
  switch (piece.kind) {
    case Operation::kAllReduce:
      return ranks == 1 ? 0 : copying_s(piece.bytes, host);
    case Operation::kGather:
      return number == piece.root ? copying_s(all * piece.bytes, host) : 0;
    default:
      return copying_s(ranks * piece.bytes, host);
  }
}

void Levels::begin(Operation& operation, int rank, double now) {
  const Layout& layout = layouts_.at(operation.group);
  const auto host = static_cast<size_t>(layout.host[traffic_.slot(operation, rank)]);
  traffic_.count_sent(operation, rank, nominal_bytes(operation, rank));
  const std::vector<int>& ranks = layout.hosts[host];
  if (++operation.here[host] < static_cast<int>(ranks.size())) return;
  Lanes& lanes = lanes_[ranks.front()];
  for (const int piece : operation.pieces) {
    lanes.up =
        std::max(lanes.up, now) + seconds_up(traffic_.operation(piece), layout, static_cast<int>(host));
    lanes.falling.emplace_back(piece, false);
    traffic_.queue.at(lanes.up, Event::kGathered, piece, ranks.front());
  }
}

void Levels::crossed(const Operation& piece, int leader, double now) {
  Lanes& lanes = lanes_[leader];
  for (auto& [number, done] : lanes.falling) done = done || number == piece.number;
  for (; !lanes.falling.empty() && lanes.falling.front().second; lanes.falling.pop_front()) {
    const Operation& next = traffic_.operation(lanes.falling.front().first);
    const Operation& whole = traffic_.operation(next.whole);
    const Layout& layout = layouts_.at(whole.group);
    const int host = layout.host[traffic_.slot(whole, leader)];
    lanes.down = std::max(lanes.down, now) + seconds_down(next, layout, host);
    if (next.number != whole.pieces.back()) continue;
    for (const int rank : layout.hosts[static_cast<size_t>(host)]) traffic_.done(whole, rank, lanes.down);
  }
}

}  // namespace syncopate::sim
