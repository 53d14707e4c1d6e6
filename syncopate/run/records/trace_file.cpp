#include "syncopate/run/records/trace_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "syncopate/base/error.h"
#include "syncopate/base/hash.h"
#include "syncopate/comm/together/gather_text.h"

namespace syncopate::run {
namespace {

using Json = nlohmann::ordered_json;
using Lane = parallel::Trace::Lane;
using Event = parallel::Trace::Event;
using Message = parallel::Trace::Message;

constexpr int kClockTag = 71;
constexpr int kRoundTrips = 8;
/// Who was blocked for less had not to wait: the message was there already.
constexpr double kAtOnce = 50e-6;

constexpr const char* kLaneNames[parallel::Trace::kLanes] = {"compute", "coding", "transfers forwards",
                                                             "transfers backwards", "exchange"};

/// Lanes have room for so many things at a time.
constexpr int kRowsOfALane = 64;

Json to_json(const ClockReading& reading) { return {reading.at, reading.ahead, reading.within}; }

ClockReading clock_from_json(const Json& json) { return {json.at(0), json.at(1), json.at(2)}; }

Json to_json(const RankTrace& trace) {
  Json events = Json::array(), messages = Json::array();
  for (const Event& e : trace.events)
    events.push_back({static_cast<int>(e.lane), e.name, e.begin, e.end, e.step, e.micro, e.bytes});
  for (const Message& m : trace.messages)
    messages.push_back({static_cast<int>(m.lane), m.sent, m.peer, m.step, m.micro, m.begin, m.end, m.bytes});
  return {trace.rank,           trace.stage, trace.replica, trace.stage_ranks, to_json(trace.before),
          to_json(trace.after), events,      messages};
}

RankTrace trace_from_json(const Json& json) {
  RankTrace trace;
  trace.rank = json.at(0);
  trace.stage = json.at(1);
  trace.replica = json.at(2);
  json.at(3).get_to(trace.stage_ranks);
  trace.before = clock_from_json(json.at(4));
  trace.after = clock_from_json(json.at(5));
  for (const Json& e : json.at(6)) {
    trace.events.push_back({.lane = static_cast<Lane>(e.at(0).get<int>()),
                            .name = e.at(1).get<std::string>(),
                            .begin = e.at(2),
                            .end = e.at(3),
                            .step = e.at(4),
                            .micro = e.at(5),
                            .bytes = e.at(6)});
  }
  for (const Json& m : json.at(7)) {
    trace.messages.push_back({.lane = static_cast<Lane>(m.at(0).get<int>()),
                              .sent = m.at(1),
                              .peer = m.at(2),
                              .step = m.at(3),
                              .micro = m.at(4),
                              .begin = m.at(5),
                              .end = m.at(6),
                              .bytes = m.at(7)});
  }
  return trace;
}

/// What a row of the picture shows, in seconds of rank 0's clock.
struct Slice {
  int rank = 0;
  Lane lane = Lane::kCompute;
  std::string name{};
  double begin = 0, end = 0;
  Json facts = Json::object();
  int row = 0;         ///< of its lane
  int64_t arrow = -1;  ///< the number of an arrow that begins here; -1: none
};

std::string name_of(const Event& event) {
  return event.micro >= 0 || event.name == "step"
             ? fmt::format("{} {}", event.name, event.name == "step" ? event.step : event.micro)
             : event.name;
}

/// A message in flight, drawn at both of its ends.
struct Flight {
  Slice sent{}, received{};
  double taken = 0;  ///< when the receiver had it
  Lane lane = Lane::kForward;
  int to = 0;
  int64_t step = 0, micro = 0;
};

std::vector<Flight> flights_of(const std::vector<RankTrace>& ranks) {
  using Key = std::tuple<int, int, int, int64_t, int64_t>;  // lane, from, to, step, micro
  std::map<Key, std::pair<const RankTrace*, const Message*>> sent;
  const auto key = [](const RankTrace& rank, const Message& message) {
    const int peer = rank.stage_ranks.at(static_cast<size_t>(message.peer));
    return Key(static_cast<int>(message.lane), message.sent ? rank.rank : peer,
               message.sent ? peer : rank.rank, message.step, message.micro);
  };
  for (const RankTrace& rank : ranks) {
    for (const Message& message : rank.messages)
      if (message.sent) sent[key(rank, message)] = {&rank, &message};
  }
  std::vector<Flight> flights;
  for (const RankTrace& rank : ranks) {
    for (const Message& message : rank.messages) {
      if (message.sent) continue;
      const auto found = sent.find(key(rank, message));
      if (found == sent.end()) continue;
      const auto [from, departure] = found->second;
      Flight flight{.taken = rank.to_common(message.end),
                    .lane = message.lane,
                    .to = rank.rank,
                    .step = message.step,
                    .micro = message.micro};
      const bool waited_for = message.end - message.begin > kAtOnce;
      const Json facts{{"step", message.step},
                       {"micro_batch", message.micro},
                       {"from_rank", from->rank},
                       {"to_rank", rank.rank},
                       {"bytes", message.bytes},
                       {"end", waited_for ? "arrived, and was waited for"
                                          : "taken: it had arrived at some moment before"}};
      const double begin = from->to_common(departure->begin);
      Slice slice{.lane = message.lane, .begin = begin, .end = std::max(begin, flight.taken), .facts = facts};
      flight.sent = flight.received = slice;
      flight.sent.rank = from->rank;
      flight.sent.name = fmt::format("send {} to rank {}", message.micro, rank.rank);
      flight.received.rank = rank.rank;
      flight.received.name = fmt::format("receive {} from rank {}", message.micro, from->rank);
      flights.push_back(std::move(flight));
    }
  }
  return flights;
}

/// What is under way in a row.
struct TraceRow {
  double end = 0;           ///< of the last thing
  bool is_bucket = false;   ///< which may have operations inside
  double inside_until = 0;  ///< where the last of these ends
};

/// Things that happen at the same time get rows of their own, unless one is a part of the other: as
/// everything in compute, and the operations of a bucket.
void choose_rows(std::vector<Slice>& slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::tuple(a.begin, -a.end) < std::tuple(b.begin, -b.end);
  });
  std::map<std::pair<int, Lane>, std::vector<TraceRow>> rows_of;
  for (Slice& slice : slices) {
    if (slice.lane == Lane::kCompute) continue;
    std::vector<TraceRow>& rows = rows_of[{slice.rank, slice.lane}];
    const bool is_bucket = slice.name.starts_with("bucket");
    const auto has_room = [&](const TraceRow& row) {
      if (row.end <= slice.begin) return true;
      return row.is_bucket && !is_bucket && slice.end <= row.end && row.inside_until <= slice.begin;
    };
    auto row = std::find_if(rows.begin(), rows.end(), has_room);
    if (row == rows.end()) row = rows.insert(rows.end(), TraceRow());
    slice.row = std::min(static_cast<int>(row - rows.begin()), kRowsOfALane - 1);
    if (row->end <= slice.begin) {
      *row = {.end = slice.end, .is_bucket = is_bucket, .inside_until = slice.begin};
    } else {
      row->inside_until = slice.end;
    }
  }
}

int thread_of(const Slice& slice) { return static_cast<int>(slice.lane) * kRowsOfALane + slice.row; }

std::string clocks_in_words(const std::vector<RankTrace>& ranks) {
  double within = 0;
  int others = 0;
  for (const RankTrace& rank : ranks) {
    const double worst = std::max(rank.before.within, rank.after.within);
    if (worst > 0) ++others;
    within = std::max(within, worst);
  }
  if (others == 0) return "all ranks are on one machine and have one clock";
  return fmt::format(
      "{} rank{} on other machines aligned to rank 0's clock by round trips before and after training, "
      "within "
      "{:.3f} ms",
      others, others == 1 ? "" : "s", 1e3 * within);
}

}  // namespace

double RankTrace::to_common(double time) const {
  // Clocks drift: between the readings by as much as they did.
  const double apart = after.at - before.at;
  const double share = apart > 0 ? std::clamp((time - before.at) / apart, 0.0, 1.0) : 0;
  return time + before.ahead + share * (after.ahead - before.ahead);
}

ClockReading compare_clocks(comm::Group& workers, const std::string& machine,
                            const std::function<double()>& clock) {
  const at::Tensor id = at::full({1}, static_cast<int64_t>(checksum(machine)), at::kLong);
  std::vector<at::Tensor> ids;
  for (int rank = 0; rank < workers.size(); ++rank) ids.push_back(at::empty_like(id));
  workers.all_gather(ids, id).wait();
  const auto differs = [&](int rank) {
    return ids[static_cast<size_t>(rank)].item<int64_t>() != ids[0].item<int64_t>();
  };
  ClockReading best{.at = clock()};
  double shortest = std::numeric_limits<double>::infinity();
  for (int rank = 1; rank < workers.size(); ++rank) {
    if (!differs(rank) || (workers.rank() != 0 && workers.rank() != rank)) continue;
    for (int i = 0; i < kRoundTrips; ++i) {
      const at::Tensor time = at::zeros({1}, at::kDouble);
      if (workers.rank() == 0) {
        workers.receive(time, rank, kClockTag).wait();
        time.fill_(clock());
        workers.send(time, rank, kClockTag).wait();
        continue;
      }
      const double asked = clock();
      workers.send(time, 0, kClockTag).wait();
      workers.receive(time, 0, kClockTag).wait();
      const double answered = clock(), trip = answered - asked;
      if (trip >= shortest) continue;
      shortest = trip;
      const double middle = (asked + answered) / 2;
      best = {.at = middle, .ahead = time.item<double>() - middle, .within = trip / 2};
    }
  }
  return best;
}

std::vector<RankTrace> gather_traces(comm::Group& workers, const RankTrace& mine) {
  std::vector<RankTrace> all;
  for (const std::string& text : comm::gather_text(workers, to_json(mine).dump(), 0))
    all.push_back(trace_from_json(Json::parse(text)));
  return all;
}

std::string trace_json(const std::vector<RankTrace>& ranks, const std::string& command) {
  std::vector<Slice> slices;
  std::map<std::tuple<int, std::string, int64_t, int64_t>, double> passes;  // rank, name, step, micro: begin
  for (const RankTrace& rank : ranks) {
    for (const Event& event : rank.events) {
      const double begin = rank.to_common(event.begin);
      Slice slice{.rank = rank.rank,
                  .lane = event.lane,
                  .name = name_of(event),
                  .begin = begin,
                  .end = std::max(begin, rank.to_common(event.end)),
                  .facts = {{"step", event.step}}};
      if (event.micro >= 0) {
        slice.facts["micro_batch"] = event.micro;
        passes[{rank.rank, event.name, event.step, event.micro}] = begin;
      }
      if (event.bytes > 0) slice.facts["bytes"] = event.bytes;
      slices.push_back(std::move(slice));
    }
  }
  const std::vector<Flight> flights = flights_of(ranks);
  for (size_t i = 0; i < flights.size(); ++i) {
    slices.push_back(flights[i].sent);
    slices.back().arrow = static_cast<int64_t>(i);
    slices.push_back(flights[i].received);
  }
  choose_rows(slices);
  const double origin = slices.empty() ? 0 : slices.front().begin;
  const auto micros = [&](double seconds) { return std::round(1e9 * seconds) / 1e3; };

  Json events = Json::array();
  const auto describe = [&](const char* what, int rank, int thread, Json facts) {
    events.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", std::move(facts)}});
  };
  for (const RankTrace& rank : ranks) {
    const std::string name =
        rank.stage < 0 ? fmt::format("rank {}", rank.rank)
                       : fmt::format("rank {}: stage {}, replica {}", rank.rank, rank.stage, rank.replica);
    describe("process_name", rank.rank, 0, {{"name", name}});
    // Replicas one below the other, each with its stages in order.
    const auto stages = static_cast<int>(std::max<size_t>(1, rank.stage_ranks.size()));
    describe("process_sort_index", rank.rank, 0,
             {{"sort_index", rank.stage < 0 ? rank.rank : rank.replica * stages + rank.stage}});
  }
  std::map<std::pair<int, int>, Lane> threads;
  for (const Slice& slice : slices) threads[{slice.rank, thread_of(slice)}] = slice.lane;
  for (const auto& [place, lane] : threads) {
    const int row = place.second % kRowsOfALane;
    describe(
        "thread_name", place.first, place.second,
        {{"name", kLaneNames[static_cast<size_t>(lane)] + (row == 0 ? "" : fmt::format(" ({})", row + 1))}});
    describe("thread_sort_index", place.first, place.second, {{"sort_index", place.second}});
  }
  for (const Slice& slice : slices) {
    const double begin = micros(slice.begin - origin);
    events.push_back({{"ph", "X"},
                      {"name", slice.name},
                      {"cat", kLaneNames[static_cast<size_t>(slice.lane)]},
                      {"pid", slice.rank},
                      {"tid", thread_of(slice)},
                      {"ts", begin},
                      {"dur", std::max(0.0, micros(slice.end - origin) - begin)},
                      {"args", slice.facts}});
    if (slice.arrow < 0) continue;
    // An arrow from a message to the pass that it was for.
    const Flight& flight = flights[static_cast<size_t>(slice.arrow)];
    const char* const pass = flight.lane == Lane::kForward ? "forward" : "backward";
    const auto found = passes.find({flight.to, std::string(pass), flight.step, flight.micro});
    if (found == passes.end()) continue;
    const Json common{{"cat", "message"}, {"name", pass}, {"id", slice.arrow}};
    Json start = common, finish = common;
    start.update({{"ph", "s"}, {"pid", slice.rank}, {"tid", thread_of(slice)}, {"ts", begin}});
    finish.update({{"ph", "f"},
                   {"bp", "e"},
                   {"pid", flight.to},
                   {"tid", static_cast<int>(Lane::kCompute) * kRowsOfALane},
                   {"ts", micros(found->second - origin)}});
    events.push_back(std::move(start));
    events.push_back(std::move(finish));
  }
  const Json file{{"displayTimeUnit", "ms"},
                  {"otherData", {{"command", command}, {"clocks", clocks_in_words(ranks)}}},
                  {"traceEvents", std::move(events)}};
  // An event a line: people look into it with grep.
  std::string text = file.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = text.find("},{\"ph\""); at != std::string::npos; at = text.find("},{\"ph\"", at + 3))
    text.insert(at + 2, 1, '\n');
  return text + "\n";
}

void require_trace_place(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw ConfigError("--trace {} is a folder; give the name of a file", file.string());
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, ignored))
    throw ConfigError("--trace {}: there is no folder {}; make it first", file.string(), folder.string());
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw ConfigError("--trace {}: the folder {} cannot be written to", file.string(), folder.string());
}

}  // namespace syncopate::run
